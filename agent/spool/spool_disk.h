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

// Does what the spool asks of the disk, and waits for it. It lives on the spool's I/O sequence and
// knows no policy.
class SpoolDisk {
 public:
  // The file system outlives it. `root` is the spool's directory.
  SpoolDisk(FileSystem& files, std::string root);

  SpoolJobResult Run(const SpoolJob& job);

  // Removes the `running` file; before any job.
  absl::Status DropRunning();

  // Chunks of one capture, in the order of `places`.
  std::vector<LoadedChunk> Load(const std::string& directory,
                                const std::vector<SpoolPlace>& places);

 private:
  absl::Status Probe();
  absl::Status Replace(const std::string& directory, const std::string& name,
                       const std::string& bytes);
  void DropRunning(SpoolJobResult& result);
  absl::Status Empty(const SpoolJob::Directory& directory);
  absl::Status AppendAll(const SpoolJob& job);
  absl::Status Write(const SpoolJob::Append& append, FileSystem::File& file);
  void SetAside(const SpoolJob::Aside& aside);
  absl::Status WriteCursor(const SpoolJob::Cursor& cursor);
  // What of the job's segments may go now, by the result of the rest.
  void Remove(const SpoolJob& job, SpoolJobResult& result);

  FileSystem& files_;
  const std::string root_;
  // Segments that are written to, by number.
  std::map<uint64_t, std::unique_ptr<FileSystem::File>> open_;
  bool running_gone_ = false;  // for sure
};

// The directory of what is set aside, and the files of the spool as a whole.
std::string QuarantineOf(const std::string& root);
std::string RunningFileOf(const std::string& root);
std::string AggregatorFileOf(const std::string& root);

}  // namespace neurontrace
