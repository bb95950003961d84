// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/chunk_envelope.h"

#include <utility>

#include "lib/base/crc32c.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"
#include "lib/wire/conversions.h"

namespace neurontrace {
namespace {

// Over the serialised header, as protobuf does not promise to serialise a message to the same bytes
// twice.
uint32_t ChecksumOf(const std::string& header, const std::string& columns) {
  return ExtendCrc32c(Crc32c(header.data(), header.size()), columns.data(), columns.size());
}

}  // namespace

void ToEnvelope(Chunk chunk, uint32_t stream_ref, v1::ChunkEnvelope* envelope) {
  envelope->set_header(SerializeChunkHeader(chunk.header));
  envelope->set_columns(std::move(chunk.columns));
  envelope->set_crc32c(ChecksumOf(envelope->header(), envelope->columns()));
  envelope->set_stream_ref(stream_ref);
}

std::string SerializeChunkHeader(const ChunkHeader& header) {
  v1::ChunkHeader message;
  ToProto(header, &message);
  return message.SerializeAsString();
}

absl::StatusOr<ChunkHeader> ParseChunkHeader(std::string_view bytes) {
  v1::ChunkHeader message;
  if (bytes.size() > limits::kChunkHeaderBytesMax ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("the chunk's header is not a ChunkHeader message");
  }
  return FromProto(message);
}

absl::StatusOr<ChunkHeader> ParseEnvelopeHeader(const v1::ChunkEnvelope& envelope) {
  if (envelope.header().size() > limits::kChunkHeaderBytesMax) {
    return InvalidArgument("the chunk's header has {} bytes; the limit is {}",
                           envelope.header().size(), limits::kChunkHeaderBytesMax);
  }
  if (envelope.columns().size() > limits::kChunkBytesMax) {
    return InvalidArgument("the chunk's columns have {} bytes; the limit is {}",
                           envelope.columns().size(), limits::kChunkBytesMax);
  }
  // Checked before anything is parsed: damaged bytes should be reported as damage and not as a
  // wrong field.
  const uint32_t checksum = ChecksumOf(envelope.header(), envelope.columns());
  if (checksum != envelope.crc32c()) {
    return InvalidArgument("the chunk's checksum is {:08x}, but its bytes give {:08x}",
                           envelope.crc32c(), checksum);
  }
  return ParseChunkHeader(envelope.header());
}

// The checks go from cheap to expensive: sizes, checksum, header, then the columns.
absl::StatusOr<ChunkHeader> ChunkValidator::Validate(const v1::ChunkEnvelope& envelope) {
  // Decoding no bytes empties the chunk, whose views would otherwise point into columns of the call
  // before.
  const auto forget = [this] { return chunk_.Decode({}); };
  RETURN_IF_ERROR(forget());
  ASSIGN_OR_RETURN(ChunkHeader header, ParseEnvelopeHeader(envelope));
  if (absl::Status status = ValidateColumns(header, envelope.columns()); !status.ok()) {
    RETURN_IF_ERROR(forget());
    return InvalidArgument("chunk {} of {}: {}", header.sequence, ToString(header.stream),
                           std::string(status.message()));
  }
  return header;
}

// Fails with INVALID_ARGUMENT if the columns cannot be decoded or contradict the header.
absl::Status ChunkValidator::ValidateColumns(const ChunkHeader& header,
                                             const std::string& columns) {
  if (header.event_count == 0) {
    if (!columns.empty() || header.columns_bytes != 0) {
      return InvalidArgument("it has columns but no events");
    }
    if (header.last_timestamp_ns != 0) {
      return InvalidArgument("it has times up to {} but no events", header.last_timestamp_ns);
    }
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(UncompressColumns(columns, header.columns_bytes, columns_));
  RETURN_IF_ERROR(chunk_.Decode(columns_));
  // Readers select chunks by their headers, so a header that differs from its columns would hide
  // events.
  if (chunk_.size() != header.event_count) {
    return InvalidArgument("its header gives {} events, but its columns have {}",
                           header.event_count, chunk_.size());
  }
  const auto times = chunk_.timestamp_ns();
  if (times.front() != header.first_timestamp_ns || times.back() != header.last_timestamp_ns) {
    return InvalidArgument("its header gives times {} to {}, but its columns have {} to {}",
                           header.first_timestamp_ns, header.last_timestamp_ns, times.front(),
                           times.back());
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
