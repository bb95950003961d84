// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/validate/inflater.h"
#include "lib/validate/trace_bytes.h"
#include "lib/validate/trace_finding.h"

namespace neurontrace {

// The packets of a trace in the order of the file, including those inside compressed packets. Logs
// what is wrong with the framing. Holds one packet, and the uncompressed packets of one compressed
// packet, each within validate_limits. Used by TraceValidator; one thread at a time.
class PacketStream {
 public:
  // `log` must outlive this.
  PacketStream(ReadBytes read, TraceFindingLog& log);

  // Sets `packet`, which is valid until the next call. Returns false at the end of the file, or if
  // no further packet can be recognised, which is logged. Moves the log's position to the packet.
  // Fails only if the reader does.
  absl::StatusOr<bool> Next(std::string_view& packet);
  // Uncompresses the packets inside the current packet, so that the next calls of Next return them.
  // Packets in such packets may not be compressed again. Damage is logged, and packets before it
  // are returned.
  void Open(std::string_view compressed);

  // Returns how many packets were read, including those inside others and those that were skipped.
  uint64_t packets() const { return packets_; }
  uint64_t compressed_packets() const { return compressed_packets_; }
  // Returns the bytes of the trace without gzip and zlib.
  uint64_t uncompressed_bytes() const { return bytes_.offset() + inflated_bytes_; }
  // Returns the file, for its size and compression.
  const TraceBytes& bytes() const { return bytes_; }

 private:
  // Sets the next packet of the file itself. Returns false at the end.
  bool NextOuter(std::string_view& packet);
  // Sets the next packet of `inner_`. Returns false if there is none; damaged rest is dropped.
  bool NextInner(std::string_view& packet);
  // Sets the packet behind a header of `header` bytes. Returns false if the file ends before.
  bool TakePacket(size_t header, size_t length, std::string_view& packet);
  // Skips a field that is not a packet. Returns false if its wire type has no known length.
  bool SkipField(uint64_t wire_type, size_t tag_bytes);
  // Skips bytes. Returns false if the file ends before.
  bool PassOver(uint64_t bytes);
  // Skips a packet that is too large to be checked.
  bool PassOverPacket(size_t header, size_t length);
  // Logs it if the beginning of the file is that of another format.
  bool IsOtherFormat(std::string_view beginning);

  TraceFindingLog& log_;
  TraceBytes bytes_;
  // Skipped by the next call, so that the packet stays valid until then.
  size_t skip_ = 0;  // bytes of the current packet
  // Reused for every compressed packet, with its buffer.
  Inflater inflater_;
  std::vector<char> inflated_;
  std::string_view inner_;     // the packets in inflated_ that were not returned yet
  bool is_inner_ = false;      // the current packet was inside another one
  bool is_inner_cut_ = false;  // not all of it was uncompressed
  // Totals for the summary.
  uint64_t packets_ = 0;
  uint64_t compressed_packets_ = 0;
  uint64_t inflated_bytes_ = 0;
};

}  // namespace neurontrace
