// SPDX-License-Identifier: Apache-2.0
// The part of RuntimeTrace that collects from rings that were held.
#include <string.h>

#include "tap/runtime_trace.h"

namespace neurontrace::tap {

void RuntimeTrace::BeginCollection(const CaptureSpec& spec, const uint8_t* capture_id) {
  if (!holds() || collecting_) return;
  const uint64_t now_ns = clock_->monotonic_ns();
  collecting_ = true;
  collected_all_ = false;
  collect_begun_ns_ = collect_due_ns_ = now_ns;
  collect_last_ = slot_count_ - 1;
  // How many events a document holds is an estimate, and what a ring records meanwhile comes last.
  const uint64_t cores = slot_core_[0] == kTapNoCore ? kTapMaxCores : 1;
  for (uint32_t slot = 0; slot < slot_count_; ++slot) {
    collect_left_[slot] = (ring_events_ + ring_events_ / 8) * cores;
  }
  errors_in_a_row_ = 0;
  schedule_.Begin(now_ns, slot_count_, ring_events_, events_per_fetch_);
  ring_->SetCapture(capture_id);
  collect_documents_at_start_ = ring_->documents();
  collect_refused_at_start_ = ring_->refused_documents();
  WriteStarted(spec, kTapRecordFlagCollected);
}

uint32_t RuntimeTrace::NextToCollect() const {
  for (uint32_t i = 1; i <= slot_count_; ++i) {
    const uint32_t slot = (collect_last_ + i) % slot_count_;
    if (collect_left_[slot] > 0) return slot;
  }
  return DrainSchedule::kNoSlot;
}

RuntimeTrace::Collected RuntimeTrace::Collect(const std::atomic<uint32_t>& interrupt) {
  const uint64_t begin_ns = clock_->monotonic_ns();
  uint64_t now_ns = begin_ns;
  while (now_ns - begin_ns < kRoundBudgetNs) {
    const uint32_t slot = NextToCollect();
    collected_all_ = slot == DrainSchedule::kNoSlot;
    if (collected_all_ || now_ns - collect_begun_ns_ >= kCollectBudgetNs) return Collected::kDone;
    if (interrupt.load(std::memory_order_acquire) != 0) return Collected::kMore;
    if (ring_->RoomForDocument() < ReservedBytes()) {
      ring_->CountDeferred(slot_core_[slot], clock_->realtime_ns());
      collect_due_ns_ = now_ns + kCollectPauseNs;
      return Collected::kMore;
    }
    uint64_t events = 0;
    const Fetched fetched = Fetch(slot, 0, &events);
    collect_last_ = slot;
    now_ns = clock_->monotonic_ns();
    collect_due_ns_ = now_ns;
    if (fetched == Fetched::kError) {
      const bool gone = last_error_ == kNrtUninitialized || last_error_ == kNrtClosed;
      if (gone || errors_in_a_row_ >= kFetchErrorsInARowMax) return Collected::kGone;
      collect_due_ns_ = now_ns + kCollectPauseNs;
      return Collected::kMore;
    }
    const bool done = fetched == Fetched::kThin || events >= collect_left_[slot];
    collect_left_[slot] = done ? 0 : collect_left_[slot] - events;
  }
  return Collected::kMore;
}

void RuntimeTrace::EndCollection(TapStopReason reason) {
  if (!collecting_) return;
  collecting_ = false;
  TapTraceStopped stopped = {};
  stopped.reason = static_cast<uint32_t>(reason);
  stopped.final_drain_complete = collected_all_ ? 1 : 0;
  WriteStopped(stopped, collect_documents_at_start_, collect_refused_at_start_);
  ring_->SetCapture(capture_id_);
}

}  // namespace neurontrace::tap
