// SPDX-License-Identifier: Apache-2.0
#include "validate/packet_stream.h"

#include <algorithm>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/varint.hpp>
#include <utility>

#include "base/status.h"
#include "validate/limits.h"
#include "validate/perfetto_numbers.h"

namespace neurontrace {
namespace {

constexpr uint32_t kPacketTag = perfetto_read::Bytes(1);
constexpr size_t kHeaderBytesMax = 15;  // a tag and a length
constexpr size_t kBytesPassedOverAtOnce = size_t{1} << 20;
constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd";

// A varint from the front of `bytes`; false where there is none.
bool TakeVarint(std::string_view& bytes, uint64_t& value) {
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

PacketStream::Bundle PacketStream::BundleIn(std::string_view packet) {
  Bundle found;
  for (protozero::pbf_reader fields(packet.data(), packet.size()); fields.next();) {
    if (fields.tag_and_type() == perfetto_read::packet::kCompressed) {
      found = {perfetto_read::TextOf(fields.get_view()), Codec::kZlib};
    } else if (fields.tag_and_type() == perfetto_read::packet::kZstdCompressed &&
               found.codec != Codec::kZlib) {
      found = {perfetto_read::TextOf(fields.get_view()), Codec::kZstd};
    } else {
      fields.skip();
    }
  }
  return found;
}

PacketStream::PacketStream(ReadBytes read, TraceFindingLog& log)
    : log_(log), bytes_(std::move(read)) {}

absl::StatusOr<bool> PacketStream::Next(std::string_view& packet) {
  while (true) {
    if (NextInner(packet)) return true;
    if (!NextOuter(packet)) break;
    if (!OpenCompressed(packet)) return true;
  }
  const absl::Status& status = bytes_.status();
  if (status.code() != absl::StatusCode::kDataLoss) {
    RETURN_IF_ERROR(status);
  } else {
    log_.Add(TraceCheck::kCompression, "{}.", std::string(status.message()));
  }
  return false;
}

// What the first bytes say when the file is none of packets.
bool PacketStream::IsOtherFormat(std::string_view beginning) {
  if (beginning.empty()) {
    log_.Add(TraceCheck::kFraming, "The file is empty.");
  } else if (beginning.front() == '{' || beginning.front() == '[') {
    log_.Add(TraceCheck::kFraming, "The file is JSON, not a trace of Perfetto's format.");
  } else if (beginning.starts_with(kZstd)) {
    log_.Add(TraceCheck::kFraming, "The file is compressed by zstd: uncompress it first.");
  } else {
    return false;
  }
  return true;
}

bool PacketStream::NextOuter(std::string_view& packet) {
  bytes_.Skip(std::exchange(skip_, 0));
  while (true) {
    log_.MoveTo({packets_ + 1, bytes_.offset()});
    std::string_view rest = bytes_.Peek(kHeaderBytesMax);
    if (rest.empty() && !bytes_.status().ok()) return false;
    if (bytes_.offset() == 0 && IsOtherFormat(rest)) return false;
    if (rest.empty()) return false;
    const size_t before = rest.size();
    uint64_t tag = 0;
    uint64_t length = 0;
    const bool has_tag = TakeVarint(rest, tag);
    if (has_tag && tag != kPacketTag && tag <= UINT32_MAX && (tag >> 3) != 0) {
      log_.Add(TraceCheck::kFraming,
               "Here stands field {} of wire type {}, where a packet should: it is skipped.",
               tag >> 3, tag & 7);
      bytes_.Skip(before - rest.size());
      if (!SkipUnknown(static_cast<uint32_t>(tag))) return false;
      continue;
    }
    if (tag != kPacketTag || !TakeVarint(rest, length)) {
      log_.Add(TraceCheck::kFraming,
               "Here stands no packet: what follows cannot be told apart and is not read.");
      return false;
    }
    if (length > validate_limits::kFormatPacketBytesMax) {
      log_.Add(TraceCheck::kFraming,
               "The packet says that it has {} bytes; over {} nothing is read any more.", length,
               validate_limits::kFormatPacketBytesMax);
      return false;
    }
    if (length <= validate_limits::kPacketBytesMax) {
      return TakePacket(before - rest.size(), length, packet);
    }
    if (!PassOverPacket(before - rest.size(), length)) return false;
  }
}

bool PacketStream::PassOver(uint64_t bytes) {
  while (bytes > 0) {
    const size_t there = bytes_.Peek(std::min<uint64_t>(bytes, kBytesPassedOverAtOnce)).size();
    if (there == 0) return false;
    const auto count = static_cast<size_t>(std::min<uint64_t>(bytes, there));
    bytes_.Skip(count);
    bytes -= count;
  }
  return true;
}

bool PacketStream::PassOverPacket(size_t header, size_t length) {
  log_.Add(TraceCheck::kLimit, "The packet has {} bytes: over {} it is not looked into.", length,
           validate_limits::kPacketBytesMax);
  if (!PassOver(header + length)) {
    log_.Add(TraceCheck::kFraming, "The file ends in the midst of a packet of {} bytes.", length);
    return false;
  }
  ++packets_;
  return true;
}

bool PacketStream::TakePacket(size_t header, size_t length, std::string_view& packet) {
  const std::string_view whole = bytes_.Peek(header + length);
  if (whole.size() < header + length) {
    log_.Add(TraceCheck::kFraming, "The file ends in the midst of a packet of {} bytes.", length);
    return false;
  }
  ++packets_;
  packet = whole.substr(header, length);
  skip_ = header + length;
  return true;
}

// The value of a field that is no packet; the tag has been skipped.
bool PacketStream::SkipUnknown(uint32_t tag_and_type) {
  std::string_view rest = bytes_.Peek(kHeaderBytesMax);
  const size_t before = rest.size();
  uint64_t value = 0;
  uint64_t bytes = 0;
  switch (tag_and_type & 7) {
    case 0:
      if (!TakeVarint(rest, value)) return false;
      bytes = before - rest.size();
      break;
    case 1:
      bytes = 8;
      break;
    case 2:
      if (!TakeVarint(rest, value)) return false;
      return PassOver(before - rest.size()) && PassOver(value);
    case 5:
      bytes = 4;
      break;
    default:
      return false;
  }
  return PassOver(bytes);
}

bool PacketStream::OpenCompressed(std::string_view packet) {
  Bundle bundle;
  try {
    bundle = BundleIn(packet);
  } catch (const protozero::exception&) {  // protozero has no other way of saying it
    return false;                          // who parses the packet finds out, and says so
  }
  if (bundle.codec == Codec::kNone) return false;
  CheckBundle(bundle);
  Unpack(bundle);
  return true;
}

void PacketStream::CheckBundle(const Bundle& bundle) {
  ++compressed_packets_;
  if (bundle.bytes.size() > validate_limits::kCompressedBytesAdvised) {
    log_.Add(TraceCheck::kCompressedSize,
             "The packet holds {} bytes of compressed packets, where Perfetto advises at most {}.",
             bundle.bytes.size(), validate_limits::kCompressedBytesAdvised);
  }
  if (codec_ == Codec::kNone) codec_ = bundle.codec;
  if (codec_ != bundle.codec) {
    log_.Add(TraceCheck::kCompression,
             "Packets are compressed by zlib and by zstd in one file, of which Perfetto reads "
             "nothing from here on.");
  }
}

absl::StatusOr<size_t> PacketStream::InflateMore(Codec codec, std::string_view& compressed,
                                                 size_t size) {
  if (inflated_.size() < size + (64u << 10)) {
    inflated_.resize(std::max(2 * inflated_.size(), size_t{256} << 10));
  }
  char* const out = inflated_.data() + size;
  const size_t room = inflated_.size() - size;
  return codec == Codec::kZstd ? zstd_inflater_.Inflate(compressed, out, room)
                               : inflater_.Inflate(compressed, out, room);
}

bool PacketStream::IsAtEnd(Codec codec) const {
  return codec == Codec::kZstd ? zstd_inflater_.is_at_end() : inflater_.is_at_end();
}

void PacketStream::SayWhyNot(Codec codec, const absl::Status& status) {
  const std::string why(status.message());
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    is_inner_cut_ = true;
    log_.Add(TraceCheck::kLimit, "The compressed packets are not read: {}.", why);
  } else {
    log_.Add(TraceCheck::kCompression,
             "The compressed packets are damaged ({}); they have to be a {}.", why,
             codec == Codec::kZstd ? "zstd frame" : "zlib or gzip stream");
  }
}

void PacketStream::Unpack(const Bundle& bundle) {
  std::string_view compressed = bundle.bytes;
  if (bundle.codec == Codec::kZstd) {
    zstd_inflater_.Reset();
  } else {
    inflater_.Reset();
  }
  is_inner_cut_ = false;
  size_t size = 0;
  while (true) {
    const auto count = InflateMore(bundle.codec, compressed, size);
    if (!count.ok()) {
      SayWhyNot(bundle.codec, count.status());
      break;
    }
    size += *count;
    if (*count == 0) {
      if (!IsAtEnd(bundle.codec))
        log_.Add(TraceCheck::kCompression, "The compressed packets end early.");
      if (!compressed.empty())
        log_.Add(TraceCheck::kCompression, "Behind the compressed packets stand {} bytes.",
                 compressed.size());
      break;
    }
    if (size > validate_limits::kInflatedBytesMax) {
      log_.Add(TraceCheck::kLimit,
               "The compressed packets have more than {} bytes uncompressed: the rest is not read.",
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
  if (!TakeVarint(rest, tag) || tag != kPacketTag || !TakeVarint(rest, length) ||
      length > rest.size()) {
    // The end of what was uncompressed may well stand in the midst of a packet.
    if (!is_inner_cut_) {
      log_.Add(TraceCheck::kCompression,
               "Among the compressed packets stands something that is no whole packet.");
    }
    return false;
  }
  ++packets_;
  packet = rest.substr(0, length);
  inner_ = rest.substr(length);
  try {
    if (BundleIn(packet).codec != Codec::kNone) {
      log_.Add(TraceCheck::kCompression, "Compressed packets hold compressed packets.");
    }
  } catch (const protozero::exception&) {
    return true;  // who parses the packet finds out, and says so
  }
  return true;
}

}  // namespace neurontrace
