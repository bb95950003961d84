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
// decides nothing. All results, errors included, are returned; nothing is retried here.
class SpoolDisk {
 public:
  // `files` outlives it. `root` is the spool's directory.
  SpoolDisk(FileSystem& files, std::string root);

  // Carries out a job in the order of its fields; see SpoolJob for why that order.
  SpoolJobResult Run(const SpoolJob& job);

  // Removes the `running` file; to be called before any job.
  absl::Status DropRunning();

  // Reads chunks of one capture back, in the order of `places`.
  std::vector<LoadedChunk> Load(const std::string& directory,
                                const std::vector<SpoolPlace>& places);

 private:
  // Writes and removes a small file, to find out whether the disk works again.
  absl::Status Probe();
  // Replaces a file atomically: after a crash it has the old contents or the new.
  absl::Status Replace(const std::string& directory, const std::string& name,
                       const std::string& bytes);
  void DropRunning(SpoolJobResult& result);
  // Removes the spool's files from a directory, and the directory if nothing is left.
  absl::Status Empty(const SpoolJob::Directory& directory);
  // Writes and syncs all batches of the job. An error means that none counts as kept.
  absl::Status AppendAll(const SpoolJob& job);
  absl::Status Write(const SpoolJob::Append& append, FileSystem::File& file);
  // Writes a refused chunk to the quarantine; an error is only logged.
  void SetAside(const SpoolJob::Aside& aside);
  absl::Status WriteCursor(const SpoolJob::Cursor& cursor);
  // Removes those of the job's segments that may go, given the result of the rest.
  void Remove(const SpoolJob& job, SpoolJobResult& result);

  FileSystem& files_;
  const std::string root_;
  // Segments that are written to, by number.
  std::map<uint64_t, std::unique_ptr<FileSystem::File>> open_;
  bool running_gone_ = false;  // for sure
};

// The directory of refused chunks, and the files of the spool as a whole.
std::string QuarantineOf(const std::string& root);
std::string RunningFileOf(const std::string& root);
std::string AggregatorFileOf(const std::string& root);

}  // namespace neurontrace
