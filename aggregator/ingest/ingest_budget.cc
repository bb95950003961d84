// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/ingest_budget.h"

#include <utility>

namespace neurontrace {

void IngestBudget::Take(size_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ += bytes;
}

void IngestBudget::Release(size_t bytes) {
  std::deque<std::function<void()>> ready;
  {
    const std::lock_guard lock(mutex_);
    bytes_ -= bytes;
    if (bytes_ < bytes_max_) ready.swap(waiting_);
  }
  for (const auto& go_on : ready) go_on();
}

void IngestBudget::WhenRoom(std::function<void()> go_on) {
  {
    const std::lock_guard lock(mutex_);
    if (bytes_ >= bytes_max_) {
      waiting_.push_back(std::move(go_on));
      return;
    }
  }
  go_on();
}

size_t IngestBudget::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace neurontrace
