// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/batch_pipe.h"

#include <cassert>
#include <utility>

namespace neurontrace {

// How it works: the reader thread fills read_, the preparer moves entries from read_ to ready_, and
// Take empties ready_; without a preparer, the reader fills ready_ itself. Each queue has one
// producer and one consumer, so that batches keep their order. held_ counts the entries of both
// queues and those in preparation, and bounds them by kBatchesMax.
BatchPipe::BatchPipe(TimelineReader& reader, Prepare prepare)
    : reader_(reader), prepare_(std::move(prepare)), reading_([this] { Read(); }) {
  if (prepare_ != nullptr) preparing_ = std::thread([this] { PrepareAll(); });
}

// A thread that waits sees stop_ and returns; one that reads or prepares finishes its batch first.
BatchPipe::~BatchPipe() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.NotifyAll();
  reading_.join();
  if (preparing_.joinable()) preparing_.join();
}

// The body of the reader thread. Returns after the entry that is the last, or once stop_ is set.
void BatchPipe::Read() {
  while (true) {
    Entry entry;
    {
      const MutexLock lock(mutex_);
      changed_.Wait(mutex_, [this]() NT_REQUIRES(mutex_) { return stop_ || held_ < kBatchesMax; });
      if (stop_) return;
      if (!idle_.empty()) {
        entry.batch = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    // Nobody else uses the reader until the threads have ended, so it needs no lock of its own.
    // Outside the lock: this is where the time goes.
    const absl::StatusOr<bool> more = reader_.Next(entry.batch);
    entry.counts = reader_.counts();
    // The last entry carries the final counts and no record.
    entry.is_last = !more.ok() || !*more;
    {
      const MutexLock lock(mutex_);
      if (!more.ok()) status_ = more.status();
      ++held_;
      assert(held_ <= kBatchesMax);
      // Counted before it is prepared, so that the limit holds for both queues together.
      (prepare_ != nullptr ? read_ : ready_).push_back(std::move(entry));
    }
    changed_.NotifyAll();
    if (!more.ok() || !*more) return;
  }
}

// The body of the preparer thread. Passes the last entry on unprepared, because it has no record.
void BatchPipe::PrepareAll() {
  assert(prepare_ != nullptr);
  bool is_last = false;
  while (!is_last) {
    Entry entry;
    {
      const MutexLock lock(mutex_);
      changed_.Wait(mutex_, [this]() NT_REQUIRES(mutex_) { return stop_ || !read_.empty(); });
      if (stop_) return;
      entry = std::move(read_.front());
      read_.pop_front();
    }
    is_last = entry.is_last;
    if (!is_last) prepare_(entry.batch);
    {
      const MutexLock lock(mutex_);
      ready_.push_back(std::move(entry));
    }
    changed_.NotifyAll();
  }
}

absl::StatusOr<bool> BatchPipe::Take(TimelineBatch& batch) {
  // Frees here, on the taker's thread and outside the lock, what the windows hold. The records
  // point into the windows, so they are cleared first.
  batch.records.clear();
  batch.windows.clear();
  MutexLock lock(mutex_);
  idle_.push_back(std::move(batch));
  changed_.Wait(mutex_, [this]() NT_REQUIRES(mutex_) { return !ready_.empty(); });
  Entry entry = std::move(ready_.front());
  ready_.pop_front();
  assert(held_ > 0);
  --held_;
  // An error of the reader is reported only after the batches before it.
  const absl::Status status = entry.is_last ? status_ : absl::OkStatus();
  lock.Unlock();
  changed_.NotifyAll();
  counts_ = entry.counts;
  batch = std::move(entry.batch);
  if (!status.ok()) return status;
  // The caller gets an empty batch with the last entry.
  return !entry.is_last;
}

}  // namespace neurontrace
