// SPDX-License-Identifier: Apache-2.0
#include "aggregator/watch/watch_queue.h"

#include <utility>

#include "lib/trace/watch_limits.h"

namespace neurontrace {

void WatchQueue::Push(WatchedChunk chunk) {
  {
    const MutexLock lock(mutex_);
    if (chunks_.size() >= limits::kWatchQueueChunksMax) {
      ++dropped_;
      return;
    }
    if (bytes_ + chunk.columns.size() > limits::kWatchQueueBytesMax) {
      ++dropped_;
      chunk.is_cut = true;
      chunk.columns = {};
    }
    bytes_ += chunk.columns.size();
    chunks_.push_back(std::move(chunk));
  }
  changed_.NotifyOne();
}

std::vector<WatchedChunk> WatchQueue::Take(size_t count, std::chrono::nanoseconds patience) {
  std::vector<WatchedChunk> taken;
  MutexLock lock(mutex_);
  changed_.WaitFor(mutex_, patience,
                   [this]() NT_REQUIRES(mutex_) { return is_closed_ || !chunks_.empty(); });
  while (!chunks_.empty() && taken.size() < count) {
    bytes_ -= chunks_.front().columns.size();
    taken.push_back(std::move(chunks_.front()));
    chunks_.pop_front();
  }
  return taken;
}

void WatchQueue::Close() {
  {
    const MutexLock lock(mutex_);
    is_closed_ = true;
  }
  changed_.NotifyAll();
}

bool WatchQueue::is_closed() const {
  const MutexLock lock(mutex_);
  return is_closed_;
}

size_t WatchQueue::size() const {
  const MutexLock lock(mutex_);
  return chunks_.size();
}

uint64_t WatchQueue::dropped() const {
  const MutexLock lock(mutex_);
  return dropped_;
}

}  // namespace neurontrace
