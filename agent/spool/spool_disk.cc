// SPDX-License-Identifier: Apache-2.0
#include "agent/spool/spool_disk.h"

#include <spdlog/spdlog.h>

#include <cassert>
#include <set>
#include <utility>

#include "agent/spool/segment_reader.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// The size at which records that were collected are passed to the kernel.
constexpr size_t kWriteBytes = 1u << 20;
// Many blocks of a file system, so that a disk which is almost full refuses it.
constexpr size_t kProbeBytes = 64u << 10;
constexpr char kCursorName[] = "cursor";
constexpr char kNewCursorName[] = "cursor.new";
constexpr char kRunningName[] = "running";
constexpr char kAggregatorName[] = "aggregator";

// The first error is kept.
void Keep(absl::Status status, absl::Status& kept) {
  if (kept.ok()) kept = std::move(status);
}

}  // namespace

std::string QuarantineOf(const std::string& root) { return root + "/quarantine"; }
std::string RunningFileOf(const std::string& root) { return root + "/" + kRunningName; }
std::string AggregatorFileOf(const std::string& root) { return root + "/" + kAggregatorName; }

SpoolDisk::SpoolDisk(FileSystem& files, std::string root) : files_(files), root_(std::move(root)) {}

SpoolJobResult SpoolDisk::Run(const SpoolJob& job) {
  SpoolJobResult result;
  // The steps have the order of SpoolJob's fields; see there for the reason.
  if (job.probe) result.tidied = Probe();
  if (job.running_left && job.running_left->empty()) {
    DropRunning(result);
  } else if (job.running_left) {
    running_removed_ = false;
    result.running = SpoolJobResult::Running::kLeft;
    absl::Status status = Replace(root_, kRunningName, *job.running_left);
    if (!status.ok()) DropRunning(result);
    Keep(std::move(status), result.tidied);
  }
  for (const SpoolJob::Directory& directory : job.directories) {
    // The next agent must not resume a capture whose cursors were removed before.
    if (result.running == SpoolJobResult::Running::kStuck) {
      result.not_emptied.push_back(directory);
    } else if (absl::Status status = Empty(directory); !status.ok()) {
      Keep(std::move(status), result.tidied);
      result.not_emptied.push_back(directory);
    }
  }
  // From here on chunks are at stake. Their result is separate from that of the rest, since chunks
  // that are durable count as kept even if a cursor could not be written.
  result.appended = AppendAll(job);
  if (!result.appended.ok()) {
    // After a failed sync it is not known what these files hold behind the last good one
    // (fsync(2)), so nothing more is appended to them.
    for (const SpoolJob::Append& append : job.appends) open_.erase(append.segment.segment);
  }
  for (const SpoolJob::QuarantinedChunk& aside : job.aside) SetAside(aside);
  // Cursors follow the chunks, since they name places that must be durable. The result of the
  // earlier steps is put aside, because Remove needs to know about the cursors alone.
  absl::Status cursors;
  for (const SpoolJob::Cursor& cursor : job.cursors) Keep(WriteCursor(cursor), cursors);
  const absl::Status before = std::exchange(result.tidied, cursors);
  // Without a current cursor the `running` file must not vouch for streams whose segments are
  // removed.
  if (!cursors.ok() && !job.removals.empty()) DropRunning(result);
  Remove(job, result);
  Keep(before, result.tidied);
  if (job.aggregator) Keep(Replace(root_, kAggregatorName, *job.aggregator), result.tidied);
  // Last, and only if all else succeeded: the file promises that the cursors on the disk are exact.
  if (job.running && result.appended.ok() && result.tidied.ok()) {
    running_removed_ = false;
    result.tidied = Replace(root_, kRunningName, *job.running);
    result.running = SpoolJobResult::Running::kWritten;
  }
  if (!result.appended.ok() || !result.tidied.ok()) DropRunning(result);
  if (const auto capacity = files_.CapacityOf(root_); capacity.ok()) result.capacity = *capacity;
  return result;
}

absl::Status SpoolDisk::DropRunning() {
  if (running_removed_) return absl::OkStatus();
  absl::Status status = files_.Remove(RunningFileOf(root_));
  if (status.ok()) status = files_.SyncDirectory(root_);
  if (absl::IsNotFound(status)) status = absl::OkStatus();
  running_removed_ = status.ok();
  return status;
}

void SpoolDisk::DropRunning(SpoolJobResult& result) {
  result.running =
      DropRunning().ok() ? SpoolJobResult::Running::kGone : SpoolJobResult::Running::kStuck;
}

absl::Status SpoolDisk::Replace(const std::string& directory, const std::string& name,
                                const std::string& bytes) {
  const std::string path = directory + "/" + name;
  // Write, sync, rename, sync the directory: after a crash the file has the old contents or the
  // new, never a mixture (rename(2)).
  ASSIGN_OR_RETURN(const auto file, files_.Create(path + ".new"));
  RETURN_IF_ERROR(file->Append(bytes));
  RETURN_IF_ERROR(file->Sync());
  RETURN_IF_ERROR(files_.Rename(path + ".new", path));
  return files_.SyncDirectory(directory);
}

absl::Status SpoolDisk::Probe() {
  const std::string path = root_ + "/probe";
  // The directory may have vanished with its mount.
  RETURN_IF_ERROR(files_.MakeDirectory(root_));
  ASSIGN_OR_RETURN(const auto file, files_.Create(path));
  RETURN_IF_ERROR(file->Append(std::string(kProbeBytes, '\0')));
  RETURN_IF_ERROR(file->Sync());
  return files_.Remove(path);
}

absl::Status SpoolDisk::Empty(const SpoolJob::Directory& directory) {
  const auto entries = files_.List(directory.path, limits::kSpoolFilesPerDirectoryMax);
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  RETURN_IF_ERROR(entries.status());
  bool all = true;
  for (const FileSystem::Entry& entry : *entries) {
    const auto segment = ParseSegmentName(entry.name);
    // Other names in the directory may belong to a later version, or to the administrator.
    const bool ours = segment || entry.name == kCursorName || entry.name == kNewCursorName;
    if (!ours || directory.keep.contains(entry.name)) {
      all = false;
      continue;
    }
    // Closed before it is removed, so that the disk frees its blocks.
    if (segment) open_.erase(*segment);
    RETURN_IF_ERROR(files_.Remove(directory.path + "/" + entry.name));
  }
  if (!all) return files_.SyncDirectory(directory.path);
  RETURN_IF_ERROR(files_.Remove(directory.path));
  return files_.SyncDirectory(root_);
}

absl::Status SpoolDisk::AppendAll(const SpoolJob& job) {
  std::set<std::string> changed;  // directories
  for (const SpoolJob::Append& append : job.appends) {
    auto& file = open_[append.segment.segment];
    // An entry that is new here and stays null means that the books and the disk disagree.
    assert(append.segment.segment != 0 && !append.chunks.empty());
    if (append.create) {
      RETURN_IF_ERROR(files_.MakeDirectory(append.directory));
      ASSIGN_OR_RETURN(file,
                       files_.Create(append.directory + "/" + SegmentName(append.segment.segment)));
      RETURN_IF_ERROR(file->Append(EncodeSegmentHeader(append.segment)));
      changed.insert(append.directory);
      // A new file is durable only when its directory is synced, and a new directory when its
      // parent is (fsync(2)).
      changed.insert(root_);
    } else if (file == nullptr) {
      return Internal("segment {} of the spool is not open", append.segment.segment);
    }
    RETURN_IF_ERROR(Write(append, *file));
  }
  // Each file is synced once, after all batches are written.
  for (const SpoolJob::Append& append : job.appends) {
    RETURN_IF_ERROR(open_[append.segment.segment]->Sync());
  }
  for (const std::string& directory : changed) RETURN_IF_ERROR(files_.SyncDirectory(directory));
  return absl::OkStatus();
}

absl::Status SpoolDisk::Write(const SpoolJob::Append& append, FileSystem::File& file) {
  assert(append.offset > 0);  // behind the segment's header
  std::string buffer;
  for (const auto& chunk : append.chunks) {
    RecordHead head;
    head.header_bytes = static_cast<uint32_t>(chunk->header().size());
    head.columns_bytes = static_cast<uint32_t>(chunk->columns().size());
    // The source's own checksum, so that damage anywhere between source and store is found.
    head.chunk_crc32c = chunk->crc32c();
    head.batch_offset = append.offset;
    buffer += EncodeRecordHead(head, chunk->header(), append.segment.salt);
    buffer += chunk->header();
    buffer += chunk->columns();
    // Few large writes; a batch need not be in memory twice.
    if (buffer.size() >= kWriteBytes) {
      RETURN_IF_ERROR(file.Append(buffer));
      buffer.clear();
    }
  }
  return buffer.empty() ? absl::OkStatus() : file.Append(buffer);
}

void SpoolDisk::SetAside(const SpoolJob::QuarantinedChunk& aside) {
  assert(!aside.name.empty() && aside.chunk != nullptr);
  const std::string directory = QuarantineOf(root_);
  const absl::Status status = [&]() -> absl::Status {
    RETURN_IF_ERROR(files_.MakeDirectory(directory));
    ASSIGN_OR_RETURN(const auto file, files_.Create(directory + "/" + aside.name));
    RETURN_IF_ERROR(file->Append(aside.chunk->SerializeAsString()));
    return file->Sync();
  }();
  // Nothing depends on it: it is a copy for people.
  if (!status.ok()) spdlog::warn("spool: cannot keep a refused chunk: {}", status.ToString());
}

absl::Status SpoolDisk::WriteCursor(const SpoolJob::Cursor& cursor) {
  if (cursor.create) {
    RETURN_IF_ERROR(files_.MakeDirectory(cursor.directory));
    RETURN_IF_ERROR(files_.SyncDirectory(root_));
  }
  absl::Status status = Replace(cursor.directory, kCursorName, cursor.bytes);
  // The directory is created with its first segment; before that there is nothing to record.
  if (absl::IsNotFound(status) && !cursor.create) return absl::OkStatus();
  return status;
}

void SpoolDisk::Remove(const SpoolJob& job, SpoolJobResult& result) {
  const absl::Status cursors = result.tidied;
  std::set<std::string> changed;
  for (const SpoolJob::Removal& removal : job.removals) {
    // If the disk has no room for a cursor, segments that the aggregator has stored are removed
    // anyway, to make some: the aggregator itself knows what it has.
    const bool makes_room =
        absl::IsResourceExhausted(cursors) && result.running != SpoolJobResult::Running::kStuck;
    const bool can_go =
        removal.given_up ? cursors.ok() && result.appended.ok() : cursors.ok() || makes_room;
    absl::Status status;
    if (can_go) {
      open_.erase(removal.segment);
      status = files_.Remove(removal.directory + "/" + SegmentName(removal.segment));
      if (absl::IsNotFound(status)) status = absl::OkStatus();
      changed.insert(removal.directory);
    }
    if (!can_go || !status.ok()) {
      result.not_removed.push_back(removal);
      // Its bytes count against the budget until it is gone.
      result.not_removed.back().failed_before = true;
      Keep(std::move(status), result.tidied);
    }
  }
  for (const std::string& directory : changed) {
    absl::Status status = files_.SyncDirectory(directory);
    if (!absl::IsNotFound(status)) Keep(std::move(status), result.tidied);
  }
}

std::vector<LoadedChunk> SpoolDisk::Load(const std::string& directory,
                                         const std::vector<SpoolPlace>& places) {
  std::vector<LoadedChunk> loaded(places.size());
  // Places are mostly runs within one segment, so the file and its header are read once for each
  // run.
  std::unique_ptr<FileSystem::File> file;
  SegmentHeader segment;
  for (size_t i = 0; i < places.size(); ++i) {
    const SpoolPlace& place = places[i];
    loaded[i].status = [&]() -> absl::Status {
      if (file == nullptr || segment.segment != place.segment) {
        ASSIGN_OR_RETURN(auto opened,
                         files_.OpenForReading(directory + "/" + SegmentName(place.segment)));
        ASSIGN_OR_RETURN(const std::string begin, opened->Read(0, kSegmentHeaderBytesMax));
        ASSIGN_OR_RETURN(segment, DecodeSegmentHeader(begin));
        segment.segment = place.segment;
        // Together with its header: places of the segment before must not be read from this file.
        file = std::move(opened);
      }
      ASSIGN_OR_RETURN(const std::string bytes, file->Read(place.offset, place.record_bytes()));
      // The head must be at its place and agree with the books. Its checksum covers the chunk's
      // header, and the chunk's own checksum covers the columns.
      const std::string_view record(bytes);
      const auto head_bytes = record.substr(0, kRecordHeadBytes);
      const auto head = DecodeRecordHead(head_bytes);
      const size_t before_columns = kRecordHeadBytes + place.header_bytes;
      if (!head || head->header_bytes != place.header_bytes ||
          head->columns_bytes != place.columns_bytes || record.size() < before_columns) {
        return DataLoss("{}/{}: no record at byte {}", directory, SegmentName(place.segment),
                        place.offset);
      }
      const auto header = record.substr(kRecordHeadBytes, place.header_bytes);
      if (!RecordHeadMatches(head_bytes, header, segment.salt)) {
        return DataLoss("{}/{}: the record at byte {} is damaged", directory,
                        SegmentName(place.segment), place.offset);
      }
      // The header is sound from here on. It is returned even if the columns are not, so that the
      // lost chunk can be replaced by one with the right sequence and counts.
      loaded[i].envelope = std::make_shared<v1::ChunkEnvelope>();
      loaded[i].envelope->set_header(std::string(header));
      const auto columns = record.substr(before_columns);
      if (!ColumnsMatch(*head, header, columns)) {
        return DataLoss("{}/{}: the columns of the record at byte {} are damaged", directory,
                        SegmentName(place.segment), place.offset);
      }
      loaded[i].envelope->set_columns(std::string(columns));
      loaded[i].envelope->set_crc32c(head->chunk_crc32c);
      return absl::OkStatus();
    }();
    // Opened again for the next place, in case the handle is the problem.
    if (!loaded[i].status.ok() && !absl::IsDataLoss(loaded[i].status)) file.reset();
  }
  return loaded;
}

}  // namespace neurontrace
