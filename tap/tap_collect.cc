// SPDX-License-Identifier: Apache-2.0
// The part of Tap that collects from rings that are held.
#include <string.h>

#include "tap/tap.h"

namespace neurontrace::tap {

void Tap::HandleCollect(uint64_t now_ns) {
  const uint8_t* asked = command_.spec.capture_id;
  if (WasCollected(asked)) {
    Answer(TapResult::kOk, asked, "", now_ns);
    return;
  }
  const bool under_way = trace_.collecting() && SameCaptureId(collecting_.capture_id, asked);
  if (!under_way &&
      (!wanted_ || !SameCaptureId(spec_.capture_id, command_.recorder_id) || !trace_.holds())) {
    Answer(TapResult::kNothingHeld, asked,
           trace_.running() ? "the rings are not held for this flight recorder"
                            : "the rings are not held now",
           now_ns);
    return;
  }
  if (!under_way && !IsWaiting(asked)) {
    if (collection_count_ == kTapCollectsMax) {
      Answer(TapResult::kAnotherCapture, asked, "too many snapshots wait for their time", now_ns);
      return;
    }
    Collection& collection = collections_[collection_count_++];
    memcpy(collection.capture_id, asked, sizeof collection.capture_id);
    collection.at_ns = command_.at_ns;
  }
  Answer(TapResult::kAccepted, asked, "", now_ns);
}

void Tap::CollectIfDue(uint64_t now_ns) {
  if (!trace_.holds()) return;
  if (!trace_.collecting()) {
    if (NextCollectionNs() > now_ns) return;
    uint32_t first = 0;
    for (uint32_t i = 1; i < collection_count_; ++i) {
      if (collections_[i].at_ns < collections_[first].at_ns) first = i;
    }
    collecting_ = collections_[first];
    collections_[first] = collections_[--collection_count_];
    trace_.BeginCollection(spec_, collecting_.capture_id);
  }
  if (trace_.NextDueNs() > now_ns) return;
  if (!gate_->Enter()) return;  // claimed: the next step gives the runtime back
  const RuntimeTrace::Collected collected = trace_.Collect(gate_->waiting());
  gate_->Leave(true);
  switch (collected) {
    case RuntimeTrace::Collected::kMore:
      return;
    case RuntimeTrace::Collected::kGone:
      return LoseTrace(now_ns);
    case RuntimeTrace::Collected::kDone:
      trace_.EndCollection(TapStopReason::kCollected);
      NoteCollected(now_ns);
  }
}

void Tap::NoteCollected(uint64_t now_ns) {
  memcpy(collected_[collected_next_], collecting_.capture_id, kTapCaptureIdBytes);
  collected_next_ = (collected_next_ + 1) % kTapCollectsMax;
  NotifyConsumer();
  Tell(TapMessageType::kCollect, TapResult::kOk, collecting_.capture_id, "", now_ns);
  memset(&collecting_, 0, sizeof collecting_);
}

// The trace has ended, and with it what its rings held.
void Tap::ForgetCollections(uint64_t now_ns) {
  static constexpr uint8_t kNone[kTapCaptureIdBytes] = {};
  if (!SameCaptureId(collecting_.capture_id, kNone)) NoteCollected(now_ns);
  while (collection_count_ > 0) {
    Tell(TapMessageType::kCollect, TapResult::kNothingHeld,
         collections_[--collection_count_].capture_id, "the rings were given up before its time",
         now_ns);
  }
}

// A STOP of what is or was to be collected; false if it is of something else.
bool Tap::StopCollection(const uint8_t* capture_id, uint64_t now_ns) {
  if (trace_.collecting() && SameCaptureId(collecting_.capture_id, capture_id)) {
    trace_.EndCollection(TapStopReason::kCommand);
    NoteCollected(now_ns);
    Answer(TapResult::kOk, capture_id, "", now_ns);
    return true;
  }
  for (uint32_t i = 0; i < collection_count_; ++i) {
    if (!SameCaptureId(collections_[i].capture_id, capture_id)) continue;
    collections_[i] = collections_[--collection_count_];
    Answer(TapResult::kOk, capture_id, "", now_ns);
    return true;
  }
  return false;
}

bool Tap::IsWaiting(const uint8_t* capture_id) const {
  for (uint32_t i = 0; i < collection_count_; ++i) {
    if (SameCaptureId(collections_[i].capture_id, capture_id)) return true;
  }
  return false;
}

bool Tap::WasCollected(const uint8_t* capture_id) const {
  for (const auto& collected : collected_) {
    if (SameCaptureId(collected, capture_id)) return true;
  }
  return false;
}

uint64_t Tap::NextCollectionNs() const {
  uint64_t next = kNeverNs;
  if (!trace_.holds() || trace_.collecting()) return next;  // one after the other
  for (uint32_t i = 0; i < collection_count_; ++i) {
    if (collections_[i].at_ns < next) next = collections_[i].at_ns;
  }
  return next;
}

}  // namespace neurontrace::tap
