// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/core_ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace neurontrace {

bool CoreRing::Open(uint64_t capture, uint64_t capacity, const EventTypeSet& types) {
  const std::lock_guard lock(mutex_);
  void* memory = mmap(nullptr, capacity * sizeof(RingEvent), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  slots_ = static_cast<RingEvent*>(memory);
  capacity_ = capacity;
  capture_ = capture;
  first_ = 0;
  end_ = 0;
  totals_ = {};
  types_ = types;
  return true;
}

void CoreRing::Close() {
  const std::lock_guard lock(mutex_);
  if (slots_ == nullptr) return;
  munmap(slots_, capacity_ * sizeof(RingEvent));
  slots_ = nullptr;
}

std::optional<fake_nrt_receipt> CoreRing::Push(const fake_nrt_event& event) {
  const std::lock_guard lock(mutex_);
  if (slots_ == nullptr || !types_.test(event.form->type)) return std::nullopt;
  if (end_ - first_ == capacity_) {
    ++first_;
    ++totals_.overwritten;
  }
  RingEvent& slot = slots_[end_ % capacity_];
  slot.form = event.form;
  slot.thread_id = event.thread_id;
  slot.tracking_id = event.tracking_id;
  slot.timestamp_ns = event.timestamp_ns;
  slot.nrta_seq_id = event.nrta_seq_id;
  slot.has_nrta_seq_id = event.has_nrta_seq_id ? 1 : 0;
  std::memcpy(slot.values, event.values, event.form->fields.size() * sizeof(uint64_t));
  ++totals_.accepted;
  return fake_nrt_receipt{.capture = capture_, .nc_local_id = end_++};
}

size_t CoreRing::Take(uint64_t end, std::span<RingEvent> out, uint64_t& first_seq) {
  const std::lock_guard lock(mutex_);
  if (slots_ == nullptr || first_ >= std::min(end, end_)) return 0;
  const size_t count = std::min<uint64_t>(out.size(), std::min(end, end_) - first_);
  const size_t at = first_ % capacity_;
  const size_t before_wrap = std::min<size_t>(count, capacity_ - at);
  std::copy_n(slots_ + at, before_wrap, out.begin());
  std::copy_n(slots_, count - before_wrap, out.begin() + before_wrap);
  first_seq = first_;
  first_ += count;
  totals_.fetched += count;
  return count;
}

uint64_t CoreRing::end_seq() const {
  const std::lock_guard lock(mutex_);
  return end_;
}

uint64_t CoreRing::size() const {
  const std::lock_guard lock(mutex_);
  return slots_ == nullptr ? 0 : end_ - first_;
}

RingTotals CoreRing::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

}  // namespace neurontrace
