// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"
#include "lib/trace/stream_cursor.h"
#include "lib/trace/worker_info.h"

// Encodes and decodes the spool's files; docs/formats/spool.md describes them byte by byte.
// Everything is little endian. Version 1 stays readable for ever. Pure functions; any thread. Used
// by SpoolDisk, SpoolRecovery, the segment reader and --spool-check.
namespace neurontrace {

// Every file carries the version of its own kind, so that one kind can change alone. A decoder
// accepts any version from 1 to its own.
inline constexpr uint32_t kSpoolVersion = 1;  // of segments
inline constexpr uint32_t kCursorVersion = 1;
inline constexpr uint32_t kRunningVersion = 1;
inline constexpr uint32_t kAggregatorVersion = 1;
// The longest header of a segment; a file that claims a longer one is damaged.
inline constexpr size_t kSegmentHeaderBytesMax = 4'096;
inline constexpr size_t kRecordHeadBytes = 32;
inline constexpr std::string_view kRecordMagic = "NTrc";

// The kinds of records. A reader skips those that it does not know.
inline constexpr uint32_t kRecordKindChunk = 1;

// The beginning of a segment. `salt` is random for each segment and is part of the checksum of
// every record head, so that bytes of another file, or of a chunk, never pass for a record.
struct SegmentHeader {
  CaptureId capture_id;
  uint64_t segment = 0;
  uint64_t salt = 0;
  std::string agent_id;
  size_t bytes = 0;  // of the header itself; the first record follows

  friend bool operator==(const SegmentHeader&, const SegmentHeader&) = default;
};
// `header.bytes` is ignored: the length follows from the agent's id.
std::string EncodeSegmentHeader(const SegmentHeader& header);
// Decodes the first bytes of a file, as many as there are up to kSegmentHeaderBytesMax. Fails with
// DATA_LOSS for a file that is no segment or is damaged, and with UNIMPLEMENTED for a later
// version, which the message names.
absl::StatusOr<SegmentHeader> DecodeSegmentHeader(std::string_view bytes);

// What precedes each chunk. The chunk's header follows it, then the columns.
struct RecordHead {
  uint32_t kind = kRecordKindChunk;
  uint32_t header_bytes = 0;
  uint32_t columns_bytes = 0;
  uint32_t chunk_crc32c = 0;  // of header and columns: ChunkEnvelope.crc32c
  // Where the batch begins that this record was written with. Everything before that place was
  // synced before any of the batch was written, which tells a torn write from damage.
  uint32_t batch_offset = 0;

  // Returns the bytes that the whole record occupies in its segment. The sum of two 32-bit lengths
  // does not overflow, also for a head that is damaged.
  uint64_t record_bytes() const {
    return kRecordHeadBytes + uint64_t{header_bytes} + columns_bytes;
  }
  friend bool operator==(const RecordHead&, const RecordHead&) = default;
};
// Encodes a head; its checksum covers `chunk_header` too.
std::string EncodeRecordHead(const RecordHead& head, std::string_view chunk_header, uint64_t salt);
// Decodes kRecordHeadBytes bytes; returns nothing if they cannot be a head. The checksum is still
// to be compared, by RecordHeadMatches, once the chunk's header has been read.
std::optional<RecordHead> DecodeRecordHead(std::string_view bytes);
// Returns false for a head of another length than kRecordHeadBytes, and if the checksum differs.
bool RecordHeadMatches(std::string_view head, std::string_view chunk_header, uint64_t salt);

// The contents of a capture's `cursor` file.
struct SpoolCursor {
  struct Stream {
    uint64_t next_sequence = 0;        // all below is stored by the aggregator, or given up
    std::optional<PrecedingGap> gone;  // the chunks before the first one left were given up
    // Where the stream continues after its last chunk that is durable, here or at the aggregator.
    std::optional<StreamCursor> behind;
    friend bool operator==(const Stream&, const Stream&) = default;
  };
  // This many bytes of this segment are known to be synced; earlier segments are completely.
  uint64_t synced_segment = 0;
  uint64_t synced_bytes = 0;
  std::map<StreamIdentity, Stream> streams;

  friend bool operator==(const SpoolCursor&, const SpoolCursor&) = default;
};
// The encoded bytes end with a checksum over all that precedes it, as in the two files below.
std::string EncodeSpoolCursor(const SpoolCursor& cursor);
// Fails with DATA_LOSS for a file that is no cursor or is damaged, and with UNIMPLEMENTED for a
// later version.
absl::StatusOr<SpoolCursor> DecodeSpoolCursor(std::string_view bytes);

// The contents of the `running` file: the captures that are resumed at the next start of an agent,
// even if it cannot reach the aggregator. Valid for one boot of the machine only.
struct SpoolRunning {
  std::string boot_id;
  std::map<CaptureId, CaptureSpec> captures;

  friend bool operator==(const SpoolRunning&, const SpoolRunning&) = default;
};
std::string EncodeSpoolRunning(const SpoolRunning& running);
// Fails as DecodeSpoolCursor does.
absl::StatusOr<SpoolRunning> DecodeSpoolRunning(std::string_view bytes);

// The `aggregator` file: the id of the aggregator that the spool is for. DecodeSpoolAggregator
// fails as DecodeSpoolCursor does, and with DATA_LOSS for an id that is longer than
// limits::kIdentityStringBytesMax or has control characters.
std::string EncodeSpoolAggregator(std::string_view aggregator_id);
absl::StatusOr<std::string> DecodeSpoolAggregator(std::string_view bytes);

// "00000017.seg", and back; nothing for other names.
std::string SegmentName(uint64_t segment);
std::optional<uint64_t> ParseSegmentName(std::string_view name);

}  // namespace neurontrace
