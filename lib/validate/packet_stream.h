// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/validate/trace_bytes.h"
#include "lib/validate/trace_finding.h"

namespace neurontrace {

// The packets of a trace in the order of the file, including those inside compressed packets. Logs
// what is wrong with the framing. One thread at a time.
class PacketStream {
 public:
  // `log` must outlive this.
  PacketStream(ReadBytes read, TraceFindingLog& log);

  // Sets `packet`, which is valid until the next call. Returns false at the end of the file, or if
  // no further packet can be recognised. Moves the log's position to the packet. Fails only if the
  // reader does.
  absl::StatusOr<bool> Next(std::string_view& packet);
  // Uncompresses the packets inside the current packet; Next returns them next. Packets in such
  // packets may not be compressed again.
  void Open(std::string_view compressed);

  uint64_t packets() const { return packets_; }
  uint64_t compressed_packets() const { return compressed_packets_; }
  uint64_t uncompressed_bytes() const { return bytes_.offset() + inflated_bytes_; }
  const TraceBytes& bytes() const { return bytes_; }

 private:
  // Sets the next packet of the file itself. Returns false at the end.
  bool NextOuter(std::string_view& packet);
  bool NextInner(std::string_view& packet);
  bool TakePacket(size_t header, size_t length, std::string_view& packet);
  bool SkipField(uint64_t wire_type, size_t tag_bytes);
  // Skips bytes. Returns false if the file ends before.
  bool PassOver(uint64_t bytes);
  bool PassOverPacket(size_t header, size_t length);
  bool IsOtherFormat(std::string_view beginning);

  TraceFindingLog& log_;
  TraceBytes bytes_;
  size_t skip_ = 0;  // bytes of the current packet
  Inflater inflater_;
  std::vector<char> inflated_;
  std::string_view inner_;     // the packets in inflated_ that were not returned yet
  bool is_inner_ = false;      // the current packet was inside another one
  bool is_inner_cut_ = false;  // not all of it was uncompressed
  uint64_t packets_ = 0;
  uint64_t compressed_packets_ = 0;
  uint64_t inflated_bytes_ = 0;
};

}  // namespace neurontrace
