// SPDX-License-Identifier: Apache-2.0
#include "agent/spool/segment_reader.h"

#include <algorithm>
#include <optional>
#include <string>

#include "lib/base/crc32c.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Large enough for many small records, and small compared with a large record's columns, which are
// skipped.
constexpr size_t kWindowBytes = 16u << 10;
// How much is read at once in search of the next record.
constexpr size_t kSearchBytes = 64u << 10;
// Places in one segment that look like a record and are none; beyond, the rest is given up. Bounds
// the work for a file that is full of the magic.
constexpr uint32_t kFalseRecordsMax = 4'096;

// A file seen through a buffer. Without it, a walk over small records would cost a system call for
// each head.
class Window {
 public:
  Window(FileSystem::File& file, uint64_t file_bytes) : file_(file), file_bytes_(file_bytes) {}

  // `size` bytes at `offset`; fewer at the end of the file. Valid until the next call.
  absl::StatusOr<std::string_view> At(uint64_t offset, size_t size) {
    const bool inside = offset >= start_ && offset + size <= start_ + buffer_.size();
    if (!inside) {
      ASSIGN_OR_RETURN(buffer_, file_.Read(offset, std::max(size, kWindowBytes)));
      start_ = offset;
    }
    return std::string_view(buffer_).substr(static_cast<size_t>(offset - start_), size);
  }
  // Returns what is buffered from `offset` on if that is at least `least` bytes, else `size` bytes,
  // so that a search reads nothing twice. Valid until the next call.
  absl::StatusOr<std::string_view> From(uint64_t offset, size_t least, size_t size) {
    const uint64_t end = start_ + buffer_.size();
    if (offset < start_ || offset + least > end) return At(offset, size);
    return std::string_view(buffer_).substr(static_cast<size_t>(offset - start_));
  }
  uint64_t file_bytes() const { return file_bytes_; }

 private:
  FileSystem::File& file_;
  const uint64_t file_bytes_;
  std::string buffer_;
  uint64_t start_ = 0;
};

// Finds records of one segment by their checksums, which include the segment's salt.
class Walk {
 public:
  Walk(FileSystem::File& file, uint64_t file_bytes, const SegmentHeader& header)
      : window_(file, file_bytes), salt_(header.salt) {}

  // Returns the record at `offset`, if there is one. Valid until the next call.
  absl::StatusOr<std::optional<FoundRecord>> Try(uint64_t offset) {
    const uint64_t left = window_.file_bytes() - std::min(window_.file_bytes(), offset);
    if (left < kRecordHeadBytes) return std::nullopt;
    // The head alone first: its lengths say how much has to be read to compare its checksum.
    ASSIGN_OR_RETURN(std::string_view bytes, window_.At(offset, kRecordHeadBytes));
    const std::optional<RecordHead> head = DecodeRecordHead(bytes);
    if (!head || head->record_bytes() > left) return std::nullopt;
    ASSIGN_OR_RETURN(bytes, window_.At(offset, kRecordHeadBytes + head->header_bytes));
    if (bytes.size() < kRecordHeadBytes) return std::nullopt;  // the file became shorter
    const std::string_view chunk_header = bytes.substr(kRecordHeadBytes);
    if (!RecordHeadMatches(bytes.substr(0, kRecordHeadBytes), chunk_header, salt_)) {
      return std::nullopt;
    }
    return FoundRecord{offset, *head, chunk_header};
  }

  // Returns where the next record begins after a place that is none; the file's end if there is
  // none.
  absl::StatusOr<uint64_t> Search(uint64_t offset) {
    while (offset < window_.file_bytes()) {
      ASSIGN_OR_RETURN(const std::string_view bytes,
                       window_.From(offset, kRecordHeadBytes, kSearchBytes));
      if (bytes.size() < kRecordHeadBytes) break;
      const size_t found = bytes.find(kRecordMagic);
      if (found == std::string_view::npos) {
        // A magic may lie across the end of the buffer, so its last bytes are searched again.
        offset += bytes.size() - (kRecordMagic.size() - 1);
        continue;
      }
      offset += found;
      ASSIGN_OR_RETURN(const std::optional<FoundRecord> record, Try(offset));
      if (record) return offset;
      if (++false_records_ > kFalseRecordsMax) break;
      ++offset;
    }
    return window_.file_bytes();
  }

 private:
  Window window_;
  const uint64_t salt_;
  uint32_t false_records_ = 0;
};

}  // namespace

absl::StatusOr<SegmentSummary> ReadSegment(FileSystem::File& file,
                                           const std::function<void(const FoundRecord&)>& visit) {
  SegmentSummary summary;
  ASSIGN_OR_RETURN(summary.file_bytes, file.Size());
  ASSIGN_OR_RETURN(const std::string begin, file.Read(0, kSegmentHeaderBytesMax));
  ASSIGN_OR_RETURN(summary.header, DecodeSegmentHeader(begin));
  Walk walk(file, summary.file_bytes, summary.header);
  // Nothing is known of the records yet; each may move this place forward.
  uint64_t offset = summary.synced_bytes = summary.header.bytes;
  while (offset < summary.file_bytes) {
    ASSIGN_OR_RETURN(const std::optional<FoundRecord> record, walk.Try(offset));
    if (!record) {
      ASSIGN_OR_RETURN(const uint64_t next, walk.Search(offset + 1));
      // Nothing sound follows. That is a write which did not end, and no damage: damage is counted
      // only between sound records.
      if (next >= summary.file_bytes) {
        summary.torn_bytes = summary.file_bytes - offset;
        break;
      }
      ++summary.damaged_places;
      summary.damaged_bytes += next - offset;
      offset = next;
      continue;
    }
    // A batch is written only after the one before it was synced. A head that claims a batch behind
    // itself is not believed.
    if (record->head.batch_offset <= offset) {
      summary.synced_bytes = std::max<uint64_t>(summary.synced_bytes, record->head.batch_offset);
    }
    if (record->head.kind == kRecordKindChunk) {
      ++summary.records;
      visit(*record);
    } else {
      ++summary.unknown_records;
    }
    offset += record->head.record_bytes();
  }
  return summary;
}

bool ColumnsMatch(const RecordHead& head, std::string_view chunk_header, std::string_view columns) {
  return columns.size() == head.columns_bytes &&
         ExtendCrc32c(Crc32c(chunk_header.data(), chunk_header.size()), columns.data(),
                      columns.size()) == head.chunk_crc32c;
}

}  // namespace neurontrace
