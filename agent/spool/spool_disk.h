// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/spool/spool_job.h"
#include "lib/base/file_system.h"

namespace neurontrace {

// Carries out the spool's jobs and blocks for the disk. Lives on the spool's I/O sequence and
// decides nothing. All results, errors included, are returned; nothing is retried here. Owned by
// the Spool and by each task that it posted, so that a job which is under way survives the Spool's
// destruction.
class SpoolDisk {
 public:
  // `files` outlives it. `root` is the spool's directory.
  SpoolDisk(FileSystem& files, std::string root);

  // Carries out a job in the order of its fields; see SpoolJob for why that order.
  SpoolJobResult Run(const SpoolJob& job);

  // Removes the `running` file; to be called before any job.
  absl::Status DropRunning();

  // Reads chunks of one capture back, in the order of `places`. Each place has its own status (see
  // LoadedChunk); one damaged record does not affect the others.
  std::vector<LoadedChunk> Load(const std::string& directory,
                                const std::vector<SpoolPlace>& places);

 private:
  // Writes and removes a small file, to find out whether the disk works again.
  absl::Status Probe();
  // Replaces a file atomically: after a crash it has the old contents or the new.
  absl::Status Replace(const std::string& directory, const std::string& name,
                       const std::string& bytes);
  // Removes the `running` file and records in the result whether that succeeded.
  void DropRunning(SpoolJobResult& result);
  // Removes the spool's files from a directory, and the directory if nothing is left.
  absl::Status Empty(const SpoolJob::Directory& directory);
  // Writes and syncs all batches of the job. An error means that none counts as kept.
  absl::Status AppendAll(const SpoolJob& job);
  // Appends the records of one batch without a sync. Fails with the file's error; recovery copes
  // with what was written by then.
  absl::Status Write(const SpoolJob::Append& append, FileSystem::File& file);
  // Writes a refused chunk to the quarantine; an error is only logged.
  void SetAside(const SpoolJob::QuarantinedChunk& aside);
  // Replaces a capture's cursor file. Returns OK if the directory does not exist and must not be
  // created: the capture is gone, or has no chunk yet.
  absl::Status WriteCursor(const SpoolJob::Cursor& cursor);
  // Removes those of the job's segments that may go, given the result of the rest.
  void Remove(const SpoolJob& job, SpoolJobResult& result);

  FileSystem& files_;
  const std::string root_;
  // Segments that are written to, by number. Entries leave with their segment, and after a failed
  // sync. A missing entry of a segment that is not new makes the batch fail with INTERNAL.
  std::map<uint64_t, std::unique_ptr<FileSystem::File>> open_;
  // Saves the system calls of removing it once more.
  bool running_removed_ = false;  // for sure
};

// The directory of refused chunks, and the files of the spool as a whole.
std::string QuarantineOf(const std::string& root);
std::string RunningFileOf(const std::string& root);
std::string AggregatorFileOf(const std::string& root);

}  // namespace neurontrace
