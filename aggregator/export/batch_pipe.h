// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/timeline/timeline_reader.h"
#include "lib/base/mutex.h"

namespace neurontrace {

// Reads a timeline on a thread of its own, a bounded number of batches ahead of who takes them, and
// hands each, on another thread, to `prepare` before it can be taken. Where that many are waiting,
// the reading waits. Take and the destructor belong to one thread; the reader, and what
// `prepare` touches, belong to the pipe's until it is gone.
// thread: export reader: reads one timeline, a bounded number of batches ahead
// thread: export preparer: prepares each batch for the thread of the call, which writes it
class BatchPipe {
 public:
  static constexpr size_t kBatchesMax = 4;

  using Prepare = std::function<void(const TimelineBatch&)>;

  BatchPipe(TimelineReader& reader, Prepare prepare);  // nullptr: nothing is to be prepared
  ~BatchPipe();                                        // ends the reading
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
    bool is_last = false;
  };
  void Read();
  void PrepareAll();

  TimelineReader& reader_;
  const Prepare prepare_;
  TimelineCounts counts_;  // the taker's

  Mutex mutex_;
  CondVar changed_;
  std::deque<Entry> read_ NT_GUARDED_BY(mutex_);           // oldest first: to be prepared
  std::deque<Entry> ready_ NT_GUARDED_BY(mutex_);          // oldest first
  size_t held_ NT_GUARDED_BY(mutex_) = 0;                  // entries that nobody has taken
  std::vector<TimelineBatch> idle_ NT_GUARDED_BY(mutex_);  // their memory is used again
  absl::Status status_ NT_GUARDED_BY(mutex_);
  bool stop_ NT_GUARDED_BY(mutex_) = false;

  std::thread reading_;
  std::thread preparing_;
};

}  // namespace neurontrace
