// SPDX-License-Identifier: Apache-2.0
#include "lib/validate/packet_stream.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"
#include "lib/validate/limits.h"
#include "lib/validate/perfetto_numbers.h"

namespace neurontrace {
namespace {

// A trace is a message whose field 1 is repeated for each packet (Trace in Perfetto's trace.proto).
constexpr uint32_t kPacketTag = perfetto_read::Bytes(1);
constexpr size_t kHeaderBytesMax = 15;  // a tag and a length
// Skipping in pieces keeps the buffer small for packets of any size.
constexpr size_t kBytesPassedOverAtOnce = size_t{1} << 20;
// The first bytes of a zstd frame (RFC 8878).
constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd";

// Removes a varint of up to 10 bytes from the front of `bytes`. Returns false if there is none.
// Higher bits of the last byte are lost, as in protobuf.
bool ConsumeVarint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (size_t i = 0; i < std::min<size_t>(bytes.size(), 10); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    value |= uint64_t{byte & 0x7fu} << (7 * i);
    if ((byte & 0x80u) == 0) {
      bytes.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

}  // namespace

PacketStream::PacketStream(ReadBytes read, TraceFindingLog& log)
    : log_(log), bytes_(std::move(read)) {}

absl::StatusOr<bool> PacketStream::Next(std::string_view& packet) {
  is_inner_ = NextInner(packet);
  if (is_inner_ || NextOuter(packet)) return true;
  const absl::Status& status = bytes_.status();
  // Damaged compression is a fault of the file; other errors are of the reader.
  if (status.code() != absl::StatusCode::kDataLoss) {
    RETURN_IF_ERROR(status);
  } else {
    log_.Add(TraceCheck::kCompression, "{}.", std::string(status.message()));
  }
  return false;
}

// Recognises files of other formats, which people pass by mistake, by their first bytes.
bool PacketStream::IsOtherFormat(std::string_view beginning) {
  if (beginning.empty()) {
    log_.Add(TraceCheck::kFraming, "The file is empty.");
  } else if (beginning.front() == '{' || beginning.front() == '[') {
    log_.Add(TraceCheck::kFraming, "The file is JSON, not a Perfetto trace.");
  } else if (beginning.starts_with(kZstd)) {
    log_.Add(TraceCheck::kFraming, "The file is compressed with zstd; decompress it first.");
  } else {
    return false;
  }
  return true;
}

bool PacketStream::NextOuter(std::string_view& packet) {
  // The bytes of the previous packet had to stay valid until this call.
  bytes_.Skip(std::exchange(skip_, 0));
  while (true) {
    log_.MoveTo({packets_ + 1, bytes_.offset()});
    std::string_view rest = bytes_.Peek(kHeaderBytesMax);
    // The reader has failed, or the compression is damaged: Next reports it.
    if (rest.empty() && !bytes_.status().ok()) return false;
    if (bytes_.offset() == 0 && IsOtherFormat(rest)) return false;
    if (rest.empty()) return false;
    const size_t before = rest.size();
    uint64_t tag = 0;
    uint64_t length = 0;
    const bool has_tag = ConsumeVarint(rest, tag);
    // Perfetto's tokenizer also skips other fields of the Trace message.
    if (has_tag && tag != kPacketTag && tag <= UINT32_MAX && (tag >> 3) != 0) {
      log_.Add(TraceCheck::kFraming,
               "Found field {} of wire type {} instead of a packet; it is skipped.", tag >> 3,
               tag & 7);
      if (!SkipField(tag & 7, before - rest.size())) return false;
      continue;
    }
    if (tag != kPacketTag || !ConsumeVarint(rest, length)) {
      log_.Add(TraceCheck::kFraming, "Found no packet; nothing is read from here on.");
      return false;
    }
    // No writer makes such a packet, so the framing is lost and anything after it would be
    // guesswork.
    if (length > validate_limits::kFormatPacketBytesMax) {
      log_.Add(TraceCheck::kFraming,
               "The packet claims {} bytes, more than {}; nothing is read from here on.", length,
               validate_limits::kFormatPacketBytesMax);
      return false;
    }
    const size_t header = before - rest.size();
    if (length <= validate_limits::kPacketBytesMax) return TakePacket(header, length, packet);
    if (!PassOverPacket(header, length)) return false;
  }
}

// Skips the rest of a field that is not a packet. Returns false if that is impossible.
bool PacketStream::SkipField(uint64_t wire_type, size_t tag_bytes) {
  bytes_.Skip(tag_bytes);
  std::string_view rest = bytes_.Peek(kHeaderBytesMax);
  const size_t before = rest.size();
  uint64_t value = 0;
  // Types 1 and 5 have a fixed size, 0 is a varint, 2 a length; 3 and 4 are obsolete.
  if (wire_type == 1 || wire_type == 5) return PassOver(wire_type == 1 ? 8 : 4);
  if ((wire_type != 0 && wire_type != 2) || !ConsumeVarint(rest, value)) return false;
  return PassOver(before - rest.size()) && (wire_type == 0 || PassOver(value));
}

bool PacketStream::PassOver(uint64_t bytes) {
  while (bytes > 0) {
    const auto there = bytes_.Peek(std::min<uint64_t>(bytes, kBytesPassedOverAtOnce)).size();
    // The pieces end early only at the end of the file.
    if (there == 0) return false;
    const auto count = std::min<uint64_t>(bytes, there);
    bytes_.Skip(count);
    bytes -= count;
  }
  return true;
}

bool PacketStream::PassOverPacket(size_t header, size_t length) {
  log_.Add(TraceCheck::kLimit, "The packet has {} bytes, more than {}; it is not checked.", length,
           validate_limits::kPacketBytesMax);
  if (!PassOver(header + length)) {
    log_.Add(TraceCheck::kFraming, "The file ends inside a packet of {} bytes.", length);
    return false;
  }
  ++packets_;
  return true;
}

bool PacketStream::TakePacket(size_t header, size_t length, std::string_view& packet) {
  const std::string_view whole = bytes_.Peek(header + length);
  if (whole.size() < header + length) {
    log_.Add(TraceCheck::kFraming, "The file ends inside a packet of {} bytes.", length);
    return false;
  }
  ++packets_;
  packet = whole.substr(header, length);
  skip_ = header + length;
  return true;
}

void PacketStream::Open(std::string_view compressed) {
  // This also limits compression bombs, which nest.
  if (is_inner_) {
    log_.Add(TraceCheck::kCompression, "Compressed packets contain compressed packets.");
    return;
  }
  ++compressed_packets_;
  if (compressed.size() > validate_limits::kCompressedBytesAdvised) {
    log_.Add(TraceCheck::kCompressedSize,
             "The packet contains {} bytes of compressed packets; Perfetto recommends at most {}.",
             compressed.size(), validate_limits::kCompressedBytesAdvised);
  }
  // The buffer keeps its memory from packet to packet.
  inflater_.Reset();
  is_inner_cut_ = false;
  size_t size = 0;
  // The buffer doubles until the stream ends or exceeds its limit, so its cost is linear.
  while (true) {
    if (inflated_.size() < size + (64u << 10)) {
      inflated_.resize(std::max(2 * inflated_.size(), size_t{256} << 10));
    }
    const auto count =
        inflater_.Inflate(compressed, inflated_.data() + size, inflated_.size() - size);
    if (!count.ok()) {
      log_.Add(TraceCheck::kCompression,
               "The compressed packets are damaged ({}); they must be a zlib or gzip stream.",
               std::string(count.status().message()));
      break;
    }
    size += *count;
    if (*count == 0) {
      if (!inflater_.is_at_end()) {
        log_.Add(TraceCheck::kCompression, "The compressed packets are truncated.");
      }
      break;
    }
    if (size > validate_limits::kInflatedBytesMax) {
      log_.Add(TraceCheck::kLimit,
               "The compressed packets have more than {} bytes uncompressed; the rest is not read.",
               validate_limits::kInflatedBytesMax);
      is_inner_cut_ = true;
      break;
    }
  }
  inflated_bytes_ += size;
  inner_ = {inflated_.data(), size};
}

bool PacketStream::NextInner(std::string_view& packet) {
  if (inner_.empty()) return false;
  log_.MoveTo({packets_ + 1, log_.position().offset});
  std::string_view rest = std::exchange(inner_, {});
  uint64_t tag = 0;
  uint64_t length = 0;
  if (!ConsumeVarint(rest, tag) || tag != kPacketTag || !ConsumeVarint(rest, length) ||
      length > rest.size()) {
    // If the uncompressed bytes were cut, the last packet may be incomplete.
    if (!is_inner_cut_) {
      log_.Add(TraceCheck::kCompression,
               "The compressed packets contain data that is not a complete packet.");
    }
    return false;
  }
  ++packets_;
  packet = rest.substr(0, length);
  inner_ = rest.substr(length);
  return true;
}

}  // namespace neurontrace
