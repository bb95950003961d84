// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "validate/inflater.h"
#include "validate/trace_bytes.h"
#include "validate/trace_finding.h"
#include "validate/zstd_inflater.h"

namespace neurontrace {

// The packets of a trace in the order of the file, those of packets of packets among them. What is
// wrong with the framing goes into the log. One thread at a time.
class PacketStream {
 public:
  PacketStream(ReadBytes read, TraceFindingLog& log);

  // The next packet, valid until the next call; false at the end, or where nothing further can be
  // told apart. Moves the log's position there. Errors of the reader.
  absl::StatusOr<bool> Next(std::string_view& packet);

  uint64_t packets() const { return packets_; }
  uint64_t compressed_packets() const { return compressed_packets_; }
  uint64_t uncompressed_bytes() const { return bytes_.offset() + inflated_bytes_; }
  const TraceBytes& bytes() const { return bytes_; }

 private:
  enum class Codec : uint8_t { kNone, kZlib, kZstd };
  // The field of a packet that holds packets.
  struct Bundle {
    std::string_view bytes;
    Codec codec = Codec::kNone;
  };
  static Bundle BundleIn(std::string_view packet);

  // Of the file: a packet; false at the end.
  bool NextOuter(std::string_view& packet);
  bool SkipUnknown(uint32_t tag_and_type);
  // The next `bytes` of the file without a look at them; false where it ends before.
  bool PassOver(uint64_t bytes);
  bool PassOverPacket(size_t header, size_t length);
  bool TakePacket(size_t header, size_t length, std::string_view& packet);
  bool IsOtherFormat(std::string_view beginning);
  bool NextInner(std::string_view& packet);
  // True where `packet` holds packets, which are to come next.
  bool OpenCompressed(std::string_view packet);
  void CheckBundle(const Bundle& bundle);
  void Unpack(const Bundle& bundle);
  // What is uncompressed of the bundle at hand, to the end of `inflated_` behind `size` bytes.
  absl::StatusOr<size_t> InflateMore(Codec codec, std::string_view& compressed, size_t size);
  bool IsAtEnd(Codec codec) const;
  void SayWhyNot(Codec codec, const absl::Status& status);

  TraceFindingLog& log_;
  TraceBytes bytes_;
  size_t skip_ = 0;  // the packet at hand
  Inflater inflater_;
  ZstdInflater zstd_inflater_;
  Codec codec_ = Codec::kNone;  // of the first packet of packets
  std::vector<char> inflated_;
  std::string_view inner_;     // what is left of it
  bool is_inner_cut_ = false;  // not all of it was uncompressed
  uint64_t packets_ = 0;
  uint64_t compressed_packets_ = 0;
  uint64_t inflated_bytes_ = 0;
};

}  // namespace neurontrace
