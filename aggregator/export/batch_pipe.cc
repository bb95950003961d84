// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/batch_pipe.h"

#include <utility>

namespace neurontrace {

BatchPipe::BatchPipe(TimelineReader& reader) : reader_(reader), thread_([this] { Run(); }) {}

BatchPipe::~BatchPipe() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BatchPipe::Run() {
  while (true) {
    Entry entry;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || ready_.size() < kBatchesMax; });
      if (stop_) return;
      if (!idle_.empty()) {
        entry.batch = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    const absl::StatusOr<bool> more = reader_.Next(entry.batch);
    entry.counts = reader_.counts();
    {
      const std::lock_guard lock(mutex_);
      if (!more.ok()) status_ = more.status();
      ended_ = !more.ok() || !*more;
      // The last entry carries the final counts and no record.
      ready_.push_back(std::move(entry));
    }
    changed_.notify_all();
    if (!more.ok() || !*more) return;
  }
}

absl::StatusOr<bool> BatchPipe::Take(TimelineBatch& batch) {
  // What the windows hold is freed here, on the taker's thread and outside the lock.
  batch.records.clear();
  batch.windows.clear();
  std::unique_lock lock(mutex_);
  idle_.push_back(std::move(batch));
  changed_.wait(lock, [this] { return !ready_.empty(); });
  Entry entry = std::move(ready_.front());
  ready_.erase(ready_.begin());
  const bool is_last = ended_ && ready_.empty();
  const absl::Status status = is_last ? status_ : absl::OkStatus();
  lock.unlock();
  changed_.notify_all();
  counts_ = entry.counts;
  batch = std::move(entry.batch);
  if (!status.ok()) return status;
  return !is_last;
}

}  // namespace neurontrace
