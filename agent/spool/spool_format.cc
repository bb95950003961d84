// SPDX-License-Identifier: Apache-2.0
#include "agent/spool/spool_format.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>

#include "lib/base/clean_text.h"
#include "lib/base/crc32c.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"
#include "lib/wire/conversions.h"
#include "neurontrace/v1/agent_gateway.pb.h"
#include "neurontrace/v1/chunk.pb.h"

namespace neurontrace {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little endian");

// Each kind of file has a magic of its own, so that a renamed file is not taken for another kind.
constexpr std::string_view kSegmentMagic = "NTSPOOL\n";
constexpr std::string_view kCursorMagic = "NTCURSR\n";
constexpr std::string_view kRunningMagic = "NTRUNNG\n";
constexpr std::string_view kAggregatorMagic = "NTAGGRG\n";
constexpr std::string_view kSegmentSuffix = ".seg";
constexpr size_t kSegmentDigits = 8;
// Magic 8, version 4, length 4, salt 8, segment 8, capture id 16, length of the agent id 4.
constexpr size_t kFixedHeaderBytes = 52;
constexpr size_t kChecksumBytes = sizeof(uint32_t);

// Appends the number's bytes in memory order, which the assertion above makes little endian.
template <typename Number>
void Put(Number number, std::string& out) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Takes values off the front of a text, and remembers whether there was enough of it, so that
// callers check once at the end.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  // Returns zero if too few bytes are left; good() is false from then on.
  template <typename Number>
  Number Take() {
    Number number{};
    const std::string_view taken = TakeBytes(sizeof number);
    if (!taken.empty()) std::memcpy(&number, taken.data(), sizeof number);
    return number;
  }
  // Returns nothing if fewer than `size` bytes are left. After that nothing is taken any more, so
  // that a wrong length cannot make later fields look sound.
  std::string_view TakeBytes(size_t size) {
    if (size > bytes_.size()) good_ = false;
    if (!good_) return {};
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  bool good() const { return good_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

uint32_t ChecksumOf(std::string_view bytes) { return Crc32c(bytes.data(), bytes.size()); }

// CRC-32C (Castagnoli; RFC 3720, appendix B.4), seeded with the segment's salt.
uint32_t HeadChecksum(std::string_view after_checksum, std::string_view chunk_header,
                      uint64_t salt) {
  uint32_t crc = Crc32c(&salt, sizeof salt);
  crc = ExtendCrc32c(crc, after_checksum.data(), after_checksum.size());
  return ExtendCrc32c(crc, chunk_header.data(), chunk_header.size());
}

// With its length, as all variable parts of these files.
void PutText(std::string_view text, std::string& out) {
  Put(static_cast<uint32_t>(text.size()), out);
  out.append(text);
}

// Checks a file that is read whole: its magic, its version, and the checksum at its end. Leaves the
// reader after the version.
absl::Status CheckWhole(std::string_view bytes, std::string_view magic, uint32_t known,
                        Reader& reader) {
  if (reader.TakeBytes(magic.size()) != magic) return DataLoss("its magic number is wrong");
  const auto version = reader.Take<uint32_t>();
  if (reader.good() && version > known) {
    return MakeStatus(absl::StatusCode::kUnimplemented,
                      "it was written by a later version of neurontrace-agent (format {})",
                      version);
  }
  if (!reader.good() || bytes.size() < kChecksumBytes) return DataLoss("it is truncated");
  const std::string_view covered = bytes.substr(0, bytes.size() - kChecksumBytes);
  Reader end(bytes.substr(covered.size()));
  if (version == 0 || end.Take<uint32_t>() != ChecksumOf(covered)) return DataLoss("it is damaged");
  return absl::OkStatus();
}

// Decodes where a stream continues. The identity is stored once, in front of these bytes, so it is
// put back before the message is converted. Fails with DATA_LOSS, or as FromProto does.
absl::StatusOr<StreamCursor> ParseAfter(std::string_view bytes, const StreamIdentity& stream) {
  v1::StreamCursor message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return DataLoss("the position of a stream is damaged");
  }
  ToProto(stream, message.mutable_stream());
  return FromProto(message);
}

}  // namespace

std::string EncodeSegmentHeader(const SegmentHeader& header) {
  std::string out(kSegmentMagic);
  Put(kSpoolVersion, out);
  Put(static_cast<uint32_t>(kFixedHeaderBytes + header.agent_id.size() + kChecksumBytes), out);
  Put(header.salt, out);
  Put(header.segment, out);
  out.append(header.capture_id.bytes());
  Put(static_cast<uint32_t>(header.agent_id.size()), out);
  out.append(header.agent_id);
  Put(ChecksumOf(out), out);
  return out;
}

absl::StatusOr<SegmentHeader> DecodeSegmentHeader(std::string_view bytes) {
  Reader reader(bytes);
  if (reader.TakeBytes(kSegmentMagic.size()) != kSegmentMagic) {
    return DataLoss("it does not have the magic number of a segment");
  }
  const auto version = reader.Take<uint32_t>();
  const auto header_bytes = reader.Take<uint32_t>();
  // A later version keeps the magic, the version and this length in their places.
  if (!reader.good()) return DataLoss("its header is truncated");
  if (version > kSpoolVersion) {
    return MakeStatus(
        absl::StatusCode::kUnimplemented,
        "it was written by a later version of neurontrace-agent (format {}; this one supports {})",
        version, kSpoolVersion);
  }
  if (version == 0 || header_bytes < kFixedHeaderBytes + kChecksumBytes ||
      header_bytes > kSegmentHeaderBytesMax || header_bytes > bytes.size()) {
    return DataLoss("its header is damaged or truncated");
  }
  SegmentHeader header;
  header.bytes = header_bytes;
  header.salt = reader.Take<uint64_t>();
  header.segment = reader.Take<uint64_t>();
  const auto capture_id = CaptureId::FromBytes(reader.TakeBytes(CaptureId::kBytes));
  // A length beyond the buffer yields an empty text and a reader that is not good.
  header.agent_id = reader.TakeBytes(reader.Take<uint32_t>());
  if (!capture_id.ok() || !reader.good() ||
      header_bytes != kFixedHeaderBytes + header.agent_id.size() + kChecksumBytes ||
      reader.Take<uint32_t>() != ChecksumOf(bytes.substr(0, header_bytes - kChecksumBytes))) {
    return DataLoss("its header is damaged");
  }
  header.capture_id = *capture_id;
  return header;
}

std::string EncodeRecordHead(const RecordHead& head, std::string_view chunk_header, uint64_t salt) {
  std::string rest;
  Put(head.kind, rest);
  Put(head.header_bytes, rest);
  Put(head.columns_bytes, rest);
  Put(head.chunk_crc32c, rest);
  Put(head.batch_offset, rest);
  // Reserved: version 1 writes zero and ignores it when it reads.
  Put(uint32_t{0}, rest);
  std::string out(kRecordMagic);
  Put(HeadChecksum(rest, chunk_header, salt), out);
  return out + rest;
}

std::optional<RecordHead> DecodeRecordHead(std::string_view bytes) {
  Reader reader(bytes);
  if (reader.TakeBytes(kRecordMagic.size()) != kRecordMagic) return std::nullopt;
  reader.Take<uint32_t>();  // the checksum
  RecordHead head;
  head.kind = reader.Take<uint32_t>();
  head.header_bytes = reader.Take<uint32_t>();
  head.columns_bytes = reader.Take<uint32_t>();
  head.chunk_crc32c = reader.Take<uint32_t>();
  head.batch_offset = reader.Take<uint32_t>();
  reader.Take<uint32_t>();
  // Limits before anything is read with these lengths: a search finds heads in arbitrary bytes.
  if (!reader.good() || head.header_bytes > limits::kChunkHeaderBytesMax ||
      head.columns_bytes > limits::kChunkBytesMax) {
    return std::nullopt;
  }
  return head;
}

bool RecordHeadMatches(std::string_view head, std::string_view chunk_header, uint64_t salt) {
  if (head.size() != kRecordHeadBytes) return false;
  Reader reader(head.substr(kRecordMagic.size()));
  const auto checksum = reader.Take<uint32_t>();
  const size_t before = kRecordMagic.size() + sizeof checksum;
  return checksum == HeadChecksum(head.substr(before), chunk_header, salt);
}

std::string EncodeSpoolCursor(const SpoolCursor& cursor) {
  std::string out(kCursorMagic);
  Put(kCursorVersion, out);
  Put(static_cast<uint32_t>(cursor.streams.size()), out);
  Put(cursor.synced_segment, out);
  Put(cursor.synced_bytes, out);
  for (const auto& [identity, stream] : cursor.streams) {
    v1::StreamIdentity message;
    ToProto(identity, &message);
    const std::string name = message.SerializeAsString();
    PutText(name, out);
    Put(stream.next_sequence, out);
    Put(static_cast<uint8_t>(stream.gone ? stream.gone->place : LossPlace::kUnspecified), out);
    Put(static_cast<uint8_t>(stream.gone ? stream.gone->reason : LossReason::kUnknown), out);
    v1::StreamCursor behind;
    if (stream.behind) {
      ToProto(*stream.behind, &behind);
      // The identity precedes it already.
      behind.clear_stream();
    }
    PutText(behind.SerializeAsString(), out);
  }
  Put(ChecksumOf(out), out);
  return out;
}

absl::StatusOr<SpoolCursor> DecodeSpoolCursor(std::string_view bytes) {
  Reader reader(bytes);
  RETURN_IF_ERROR(CheckWhole(bytes, kCursorMagic, kCursorVersion, reader));
  // The checksum protects against accidents only: a forged file passes it, so each length and count
  // is checked below.
  const auto streams = reader.Take<uint32_t>();
  SpoolCursor cursor;
  cursor.synced_segment = reader.Take<uint64_t>();
  cursor.synced_bytes = reader.Take<uint64_t>();
  // Before the loop, so that a file cannot make it run longer than the limit allows.
  if (streams > limits::kStreamsPerCaptureMax)
    return DataLoss("it has {} streams, more than the limit", streams);
  for (uint32_t i = 0; i < streams && reader.good(); ++i) {
    v1::StreamIdentity message;
    const std::string_view name = reader.TakeBytes(reader.Take<uint32_t>());
    SpoolCursor::Stream stream;
    stream.next_sequence = reader.Take<uint64_t>();
    v1::GoneBefore gone;
    gone.set_place(static_cast<v1::LossPlace>(reader.Take<uint8_t>()));
    gone.set_reason(static_cast<v1::LossReason>(reader.Take<uint8_t>()));
    if (!reader.good() || !message.ParseFromArray(name.data(), static_cast<int>(name.size()))) {
      return DataLoss("the identity of stream {} is damaged", i);
    }
    ASSIGN_OR_RETURN(StreamIdentity identity, FromProto(message));
    if (gone.place() != v1::LOSS_PLACE_UNSPECIFIED) {
      ASSIGN_OR_RETURN(stream.gone, FromProto(gone));
    }
    const std::string_view behind = reader.TakeBytes(reader.Take<uint32_t>());
    if (!behind.empty()) {
      ASSIGN_OR_RETURN(stream.behind, ParseAfter(behind, identity));
      // Bytes without a known field are equivalent to none.
      if (*stream.behind == StreamCursor{.stream = identity}) stream.behind.reset();
    }
    cursor.streams.insert_or_assign(std::move(identity), std::move(stream));
  }
  // CheckWhole compared the checksum; here it must be all that is left.
  reader.TakeBytes(kChecksumBytes);
  if (!reader.good() || !reader.at_end()) return DataLoss("its length differs from its header");
  return cursor;
}

std::string EncodeSpoolRunning(const SpoolRunning& running) {
  std::string out(kRunningMagic);
  Put(kRunningVersion, out);
  PutText(running.boot_id, out);
  Put(static_cast<uint32_t>(running.captures.size()), out);
  for (const auto& [capture_id, spec] : running.captures) {
    out.append(capture_id.bytes());
    v1::CaptureSpec message;
    ToProto(spec, &message);
    PutText(message.SerializeAsString(), out);
  }
  Put(ChecksumOf(out), out);
  return out;
}

absl::StatusOr<SpoolRunning> DecodeSpoolRunning(std::string_view bytes) {
  Reader reader(bytes);
  RETURN_IF_ERROR(CheckWhole(bytes, kRunningMagic, kRunningVersion, reader));
  // Only the length of each part is trusted here; FromProto checks what a capture may ask for.
  SpoolRunning running;
  running.boot_id = reader.TakeBytes(reader.Take<uint32_t>());
  const auto captures = reader.Take<uint32_t>();
  if (captures > limits::kSpoolRunningMax)
    return DataLoss("it has {} captures, more than the limit", captures);
  for (uint32_t i = 0; i < captures && reader.good(); ++i) {
    const auto capture_id = CaptureId::FromBytes(reader.TakeBytes(CaptureId::kBytes));
    const std::string_view spec = reader.TakeBytes(reader.Take<uint32_t>());
    v1::CaptureSpec message;
    if (!reader.good() || !capture_id.ok() ||
        !message.ParseFromArray(spec.data(), static_cast<int>(spec.size()))) {
      return DataLoss("the specification of capture {} is damaged", i);
    }
    ASSIGN_OR_RETURN(running.captures[*capture_id], FromProto(message));
  }
  reader.TakeBytes(kChecksumBytes);
  if (!reader.good() || !reader.at_end()) return DataLoss("its length differs from its header");
  return running;
}

std::string EncodeSpoolAggregator(std::string_view aggregator_id) {
  std::string out(kAggregatorMagic);
  Put(kAggregatorVersion, out);
  PutText(aggregator_id, out);
  Put(ChecksumOf(out), out);
  return out;
}

absl::StatusOr<std::string> DecodeSpoolAggregator(std::string_view bytes) {
  Reader reader(bytes);
  RETURN_IF_ERROR(CheckWhole(bytes, kAggregatorMagic, kAggregatorVersion, reader));
  const std::string_view id = reader.TakeBytes(reader.Take<uint32_t>());
  reader.TakeBytes(kChecksumBytes);
  if (!reader.good() || !reader.at_end()) return DataLoss("its length differs from its header");
  // The id is compared, logged and sent, so it must be a text that an aggregator could have sent.
  if (CleanText(id, limits::kIdentityStringBytesMax) != id) {
    return DataLoss("the aggregator's id is invalid");
  }
  return std::string(id);
}

std::string SegmentName(uint64_t segment) {
  return fmt::format("{:0{}}{}", segment, kSegmentDigits, kSegmentSuffix);
}

std::optional<uint64_t> ParseSegmentName(std::string_view name) {
  if (!name.ends_with(kSegmentSuffix)) return std::nullopt;
  name.remove_suffix(kSegmentSuffix.size());
  uint64_t segment = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, segment);
  // Number 0 means "no segment" elsewhere. More than eight digits are valid.
  if (error != std::errc() || rest != end || name.size() < kSegmentDigits || segment == 0) {
    return std::nullopt;
  }
  return segment;
}

}  // namespace neurontrace
