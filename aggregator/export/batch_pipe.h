// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// Reads a timeline on a thread of its own, a bounded number of batches ahead of who takes them.
// Where that many are waiting, the reading waits. Take, Recycle and the destructor belong to one
// thread; the reader must not be touched by anybody else until the pipe is gone.
class BatchPipe {
 public:
  static constexpr size_t kBatchesMax = 3;

  explicit BatchPipe(TimelineReader& reader);
  ~BatchPipe();  // ends the reading
  BatchPipe(const BatchPipe&) = delete;
  BatchPipe& operator=(const BatchPipe&) = delete;

  // The next batch into `batch`; false at the end; the reader's error.
  absl::StatusOr<bool> Take(TimelineBatch& batch);
  // The reader's counts and warnings as of the batch taken last.
  const TimelineCounts& counts() const { return counts_; }

 private:
  struct Entry {
    TimelineBatch batch;
    TimelineCounts counts;
  };
  void Run();

  TimelineReader& reader_;
  TimelineCounts counts_;  // the taker's

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Entry> ready_;         // guarded by mutex_, oldest first
  std::vector<TimelineBatch> idle_;  // guarded by mutex_: their memory is used again
  absl::Status status_;              // guarded by mutex_
  bool ended_ = false;               // guarded by mutex_: no further entry will come
  bool stop_ = false;                // guarded by mutex_

  std::thread thread_;
};

}  // namespace neurontrace
