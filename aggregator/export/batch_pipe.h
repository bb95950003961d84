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

// Reads a timeline on a thread of its own, a limited number of batches ahead of the thread that
// takes them, and passes each to `prepare` on another thread before it can be taken. When that many
// batches wait, reading waits, too. Take and the destructor belong to one thread. The reader, and
// what `prepare` touches, belong to the pipe's threads until it is destroyed.
// thread: export reader: reads one timeline, a bounded number of batches ahead
// thread: export preparer: prepares each batch for the thread of the call, which writes it
class BatchPipe {
 public:
  // Batches that are read and not taken yet: enough to keep three threads busy, few enough that
  // memory stays that of some batches.
  static constexpr size_t kBatchesMax = 4;

  using Prepare = std::function<void(const TimelineBatch&)>;

  // Starts reading at once. A null `prepare` means that nothing is to be prepared.
  BatchPipe(TimelineReader& reader, Prepare prepare);
  // Stops reading, even in the middle of a capture, and waits for the threads.
  ~BatchPipe();
  BatchPipe(const BatchPipe&) = delete;
  BatchPipe& operator=(const BatchPipe&) = delete;

  // Replaces `batch` by the next one, whose memory is reused. Returns false at the end. Fails with
  // the reader's error, after all batches before it. Blocks while none is ready. Must not be called
  // again after false or an error.
  absl::StatusOr<bool> Take(TimelineBatch& batch);
  // Returns the reader's counts as of the batch that was taken last.
  const TimelineCounts& counts() const { return counts_; }

 private:
  // A batch with the reader's counts as of its end.
  struct Entry {
    TimelineBatch batch;
    TimelineCounts counts;
    // The end or an error: the batch has no records.
    bool is_last = false;
  };
  // The bodies of the two threads.
  void Read();
  void PrepareAll();

  TimelineReader& reader_;
  const Prepare prepare_;
  // Belongs to the thread that takes batches.
  TimelineCounts counts_;

  Mutex mutex_;
  // Signals any change of the fields below. Three threads wait on it for different conditions, so
  // that every signal must reach all of them.
  CondVar changed_;
  // To be prepared, oldest first.
  std::deque<Entry> read_ NT_GUARDED_BY(mutex_);
  // To be taken, oldest first.
  std::deque<Entry> ready_ NT_GUARDED_BY(mutex_);
  // Entries that were read and not taken.
  size_t held_ NT_GUARDED_BY(mutex_) = 0;
  // Taken and returned: their memory is reused.
  std::vector<TimelineBatch> idle_ NT_GUARDED_BY(mutex_);
  // The reader's error, which Take returns together with the last entry.
  absl::Status status_ NT_GUARDED_BY(mutex_);
  // Set by the destructor: both threads must return without waiting for room.
  bool stop_ NT_GUARDED_BY(mutex_) = false;

  std::thread reading_;
  std::thread preparing_;
};

}  // namespace neurontrace
