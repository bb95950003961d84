// SPDX-License-Identifier: Apache-2.0
#include "agent/spool/spool_recovery.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <vector>

#include "agent/spool/spool_disk.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"
#include "lib/wire/chunk_envelope.h"

namespace neurontrace {
namespace {

// Fails with DATA_LOSS if the bytes are no chunk header, or are one of another capture.
absl::StatusOr<ChunkHeader> ParseHeader(std::string_view bytes, const CaptureId& capture_id) {
  ASSIGN_OR_RETURN(ChunkHeader header, ParseChunkHeader(bytes));
  if (header.capture_id != capture_id) return DataLoss("it belongs to another capture");
  return header;
}

// Returns the place up to which a segment's records are sound: all of it, or, if the last batch may
// never have been synced, up to the first record of that batch that is incomplete.
absl::StatusOr<uint64_t> IntactBytes(FileSystem::File& file, uint64_t known_synced) {
  struct Record {
    uint64_t offset;
    RecordHead head;
  };
  std::vector<Record> records;
  const auto note = [&](const FoundRecord& found) {
    records.push_back({found.offset, found.head});
  };
  ASSIGN_OR_RETURN(const SegmentSummary summary, ReadSegment(file, note));
  // Two witnesses: the newest batch names the place before it, and the cursor file names a place
  // that was synced when it was written. The farther one counts.
  uint64_t sound = std::max(summary.synced_bytes, known_synced);
  for (const Record& record : records) {
    const uint64_t end = record.offset + record.head.record_bytes();
    if (end <= sound) continue;
    if (record.offset > sound) break;  // damage lies between
    ASSIGN_OR_RETURN(const std::string bytes,
                     file.Read(record.offset + kRecordHeadBytes,
                               record.head.header_bytes + record.head.columns_bytes));
    const std::string_view chunk(bytes);
    if (bytes.size() != record.head.header_bytes + record.head.columns_bytes ||
        !ColumnsMatch(record.head, chunk.substr(0, record.head.header_bytes),
                      chunk.substr(record.head.header_bytes))) {
      break;
    }
    sound = end;
  }
  return sound;
}

}  // namespace

absl::Status SpoolRecovery::Run(const Visitor& visitor, Summary& summary) {
  // An earlier attempt may have filled it halfway.
  summary = {};
  exact_.clear();
  ASSIGN_OR_RETURN(const auto entries, files_.List(root_, limits::kSpoolFilesPerDirectoryMax));
  const auto aside = files_.List(QuarantineOf(root_), limits::kSpoolFilesPerDirectoryMax);
  if (aside.ok()) {
    for (const FileSystem::Entry& entry : *aside) summary.quarantine_bytes += entry.bytes;
    summary.quarantine_files = aside->size();
  }
  for (const FileSystem::Entry& entry : entries) {
    const auto capture_id = CaptureId::Parse(entry.name);
    // Only names that this program writes: other directories are left alone.
    if (!entry.is_directory || !capture_id.ok() || capture_id->ToString() != entry.name) continue;
    RETURN_IF_ERROR(ReadCapture(*capture_id, root_ + "/" + entry.name, visitor, summary));
  }
  // After the captures, since it needs to know which of them are intact.
  RETURN_IF_ERROR(ReadRunning(summary));
  RETURN_IF_ERROR(ReadAggregator(summary));
  for (const auto& [number, segment] : summary.segments) {
    summary.bytes += segment.bytes;
    summary.chunks += segment.records;
  }
  return absl::OkStatus();
}

absl::Status SpoolRecovery::ReadCapture(const CaptureId& capture_id, const std::string& directory,
                                        const Visitor& visitor, Summary& summary) {
  ASSIGN_OR_RETURN(const auto entries, files_.List(directory, limits::kSpoolFilesPerDirectoryMax));
  std::map<uint64_t, FileSystem::Entry> segments;
  for (const FileSystem::Entry& entry : entries) {
    if (const auto segment = ParseSegmentName(entry.name)) segments[*segment] = entry;
  }
  // Before the segments, since the visitor needs it to judge their chunks.
  ASSIGN_OR_RETURN(const SpoolCursor cursor, ReadCursor(capture_id, directory, summary));
  visitor.on_capture(capture_id, cursor);
  for (const auto& [segment, entry] : segments) {
    summary.last_segment = std::max(summary.last_segment, segment);
    const std::string path = directory + "/" + entry.name;
    // Only the last segment may hold writes that were never synced: a segment is started when the
    // one before it is synced.
    const bool last = segment == segments.rbegin()->first;
    const absl::Status status =
        ReadOne(capture_id, path, segment, last ? &cursor : nullptr, visitor, summary);
    if (status.ok()) continue;
    // Not ours to remove: a downgraded agent must not destroy what a newer one wrote.
    if (absl::IsUnimplemented(status) || absl::IsPermissionDenied(status)) {
      spdlog::warn("spool: {} is ignored: {}", path, std::string(status.message()));
      summary.left_alone[capture_id].insert(entry.name);
      ++summary.segments_left_alone;
    } else if (absl::IsDataLoss(status)) {
      SetAside(entry, capture_id, status, summary);
      exact_.erase(capture_id);
      // The last segment may never have been synced; then nothing in it was reported as kept.
      const bool never_synced = last && cursor.synced_segment != segment;
      if (!never_synced) summary.uncertain.insert(capture_id);
    } else if (!gives_up_) {
      return MakeStatus(status.code(), "{} cannot be read: {}", path,
                        std::string(status.message()));
    } else {
      spdlog::error("spool: {} is discarded because it cannot be read: {}", path,
                    std::string(status.message()));
      ++summary.files_unreadable;
      summary.uncertain.insert(capture_id);
    }
  }
  return absl::OkStatus();
}

// Waiting does not turn a FIFO or a link into a regular file.
bool SpoolRecovery::IsPassedOver(const absl::Status& status) const {
  return gives_up_ || absl::IsDataLoss(status);
}

absl::StatusOr<std::string> SpoolRecovery::ReadWhole(const std::string& path, size_t bytes_max) {
  ASSIGN_OR_RETURN(const auto file, files_.OpenForReading(path));
  return file->Read(0, bytes_max);
}

absl::Status SpoolRecovery::ReadRunning(Summary& summary) {
  const std::string path = RunningFileOf(root_);
  const auto bytes = ReadWhole(path, limits::kSpoolRunningBytesMax);
  if (absl::IsNotFound(bytes.status())) return absl::OkStatus();
  summary.running_stale = true;
  if (!bytes.ok() && !IsPassedOver(bytes.status())) return bytes.status();
  if (!bytes.ok()) ++summary.files_unreadable;
  absl::StatusOr<SpoolRunning> running =
      bytes.ok() ? DecodeSpoolRunning(*bytes) : absl::StatusOr<SpoolRunning>(bytes.status());
  if (!running.ok()) {
    spdlog::warn("spool: {} is ignored: {}", path, std::string(running.status().message()));
    return absl::OkStatus();
  }
  // After a reboot no tap holds anything that the cursors could refer to.
  if (boot_id_.empty() || running->boot_id != boot_id_) return absl::OkStatus();
  for (auto& [capture_id, spec] : running->captures) {
    // A capture is resumed only if its streams are known to the last chunk.
    const bool exact = exact_.contains(capture_id) && !summary.uncertain.contains(capture_id) &&
                       !summary.left_alone.contains(capture_id);
    if (exact) summary.running.emplace(capture_id, std::move(spec));
  }
  summary.running_stale = summary.running.size() != running->captures.size();
  return absl::OkStatus();
}

absl::Status SpoolRecovery::ReadAggregator(Summary& summary) {
  const std::string path = AggregatorFileOf(root_);
  const auto bytes = ReadWhole(path, limits::kSpoolRunningBytesMax);
  if (absl::IsNotFound(bytes.status())) return absl::OkStatus();
  if (!bytes.ok() && !IsPassedOver(bytes.status())) return bytes.status();
  if (!bytes.ok()) ++summary.files_unreadable;
  absl::StatusOr<std::string> id =
      bytes.ok() ? DecodeSpoolAggregator(*bytes) : absl::StatusOr<std::string>(bytes.status());
  if (id.ok()) {
    summary.aggregator_id = *std::move(id);
  } else {
    spdlog::warn("spool: {} is ignored: {}", path, std::string(id.status().message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<SpoolCursor> SpoolRecovery::ReadCursor(const CaptureId& capture_id,
                                                      const std::string& directory,
                                                      Summary& summary) {
  const std::string path = directory + "/cursor";
  const auto bytes = ReadWhole(path, limits::kSpoolCursorBytesMax);
  // Without it, chunks that the aggregator has are sent once more, which costs nothing else.
  if (absl::IsNotFound(bytes.status())) return SpoolCursor();
  if (!bytes.ok() && !IsPassedOver(bytes.status())) return bytes.status();
  if (!bytes.ok()) ++summary.files_unreadable;
  absl::StatusOr<SpoolCursor> cursor =
      bytes.ok() ? DecodeSpoolCursor(*bytes) : absl::StatusOr<SpoolCursor>(bytes.status());
  if (cursor.ok()) {
    exact_.insert(capture_id);
    return cursor;
  }
  spdlog::warn("spool: {} is ignored: {}", path, std::string(cursor.status().message()));
  return SpoolCursor();
}

absl::Status SpoolRecovery::ReadOne(const CaptureId& capture_id, const std::string& path,
                                    uint64_t segment, const SpoolCursor* cursor,
                                    const Visitor& visitor, Summary& summary) {
  ASSIGN_OR_RETURN(const auto file, files_.OpenForReading(path));
  // The whole segment is sound unless it is the last one of its capture.
  uint64_t sound = ~uint64_t{0};
  if (cursor != nullptr) {
    const uint64_t synced = cursor->synced_segment == segment ? cursor->synced_bytes : 0;
    ASSIGN_OR_RETURN(sound, IntactBytes(*file, synced));
  }
  ASSIGN_OR_RETURN(const std::string begin, file->Read(0, kSegmentHeaderBytesMax));
  ASSIGN_OR_RETURN(const SegmentHeader segment_header, DecodeSegmentHeader(begin));
  // A file that was copied or renamed.
  if (segment_header.capture_id != capture_id || segment_header.segment != segment) {
    return DataLoss("its header names segment {} of capture {}", segment_header.segment,
                    segment_header.capture_id.ToString());
  }
  if (segment_header.agent_id != agent_id_) {
    return MakeStatus(absl::StatusCode::kPermissionDenied, "it belongs to agent {}; this one is {}",
                      segment_header.agent_id, agent_id_);
  }
  uint64_t records = 0;
  uint64_t unfit = 0;
  const auto visit = [&](const FoundRecord& found) {
    // Behind this place nothing was reported as kept, so its source sends it again.
    if (found.offset >= sound) return;
    const auto header = ParseHeader(found.chunk_header, capture_id);
    if (!header.ok()) {
      ++unfit;
      return;
    }
    ++records;
    visitor.on_chunk(*header, {segment, static_cast<uint32_t>(found.offset),
                               found.head.header_bytes, found.head.columns_bytes});
  };
  // The records before the sound end are reported. Columns are not read: damage in them is found
  // when the chunk is loaded.
  ASSIGN_OR_RETURN(const SegmentSummary walked, ReadSegment(*file, visit));
  summary.segments[segment] = {capture_id, walked.file_bytes, records};
  summary.damaged_places += walked.damaged_places + unfit;
  if (walked.damaged_places + unfit > 0) exact_.erase(capture_id);
  summary.torn_bytes += walked.file_bytes - std::min(walked.file_bytes, sound);
  if (sound == ~uint64_t{0} && walked.torn_bytes > 0) {
    // The end of a segment that others follow: a write that failed, and was repeated in the next
    // one.
    summary.torn_bytes += walked.torn_bytes;
  }
  if (walked.damaged_places + unfit > 0) {
    spdlog::warn("spool: {} is damaged in {} places; the losses are reported with the next chunks",
                 path, walked.damaged_places + unfit);
  }
  return absl::OkStatus();
}

void SpoolRecovery::SetAside(const FileSystem::Entry& entry, const CaptureId& capture_id,
                             const absl::Status& why, Summary& summary) {
  const std::string path = root_ + "/" + capture_id.ToString() + "/" + entry.name;
  const std::string directory = QuarantineOf(root_);
  const std::string to = directory + "/" + capture_id.ToString() + "-" + entry.name;
  ++summary.damaged_segments;
  const bool room = summary.quarantine_bytes + entry.bytes <= limits::kSpoolQuarantineBytesMax &&
                    summary.quarantine_files < limits::kSpoolQuarantineFilesMax;
  spdlog::error("spool: {} cannot be used and is {}: {}", path,
                room ? "moved to " + directory : "removed because the quarantine is full",
                std::string(why.message()));
  const absl::Status status = [&]() -> absl::Status {
    // A quarantine without a limit would fill the disk that the spool has to live on.
    if (!room) return files_.Remove(path);
    RETURN_IF_ERROR(files_.MakeDirectory(directory));
    RETURN_IF_ERROR(files_.Rename(path, to));
    return files_.SyncDirectory(directory);
  }();
  if (!status.ok()) {
    spdlog::warn("spool: cannot move or remove {}: {}", path, status.ToString());
  } else if (room) {
    summary.quarantine_bytes += entry.bytes;
    ++summary.quarantine_files;
  }
}

}  // namespace neurontrace
