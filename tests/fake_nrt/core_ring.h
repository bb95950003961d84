// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <bitset>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

#include "tests/fake_nrt/event_form.h"
#include "tests/fake_nrt/fake_nrt.h"

namespace neurontrace {

using EventTypeSet = std::bitset<kEventTypesMax>;

// One recorded event: 112 bytes, as big as the runtime's own record.
struct RingEvent {
  const fake_nrt_form* form;
  uint64_t thread_id;
  uint64_t tracking_id;
  uint64_t timestamp_ns;
  uint64_t nrta_seq_id;
  uint64_t has_nrta_seq_id;
  uint64_t values[FAKE_NRT_VALUES_MAX];
};
static_assert(sizeof(RingEvent) == 112);

// What a ring counted since the capture began.
struct RingTotals {
  uint64_t accepted = 0;
  uint64_t overwritten = 0;
  uint64_t fetched = 0;
};

// The trace ring of one logical core. Overwrites the oldest event and never blocks the producer for
// longer than one batch copy of a fetch. Sequence numbers go to accepted events only and begin at 0
// with each capture, so that overwriting shows as a hole between two fetched numbers. Any thread
// may call anything.
class CoreRing {
 public:
  ~CoreRing() { Close(); }

  // Allocates the ring (address space; pages come with use). False when there is no memory.
  bool Open(uint64_t capture, uint64_t capacity, const EventTypeSet& types);
  // Frees it; unfetched events are lost.
  void Close();

  // Records the event unless no capture runs here or its type is filtered out.
  std::optional<fake_nrt_receipt> Push(const fake_nrt_event& event);
  // Takes up to out.size() of the oldest events with a sequence number below `end`; returns how
  // many, and the number of the first.
  size_t Take(uint64_t end, std::span<RingEvent> out, uint64_t& first_seq);
  // One past the newest sequence number.
  uint64_t end_seq() const;
  uint64_t size() const;
  RingTotals totals() const;

  uint64_t NextTracking() { return tracking_.fetch_add(1, std::memory_order_relaxed); }

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  RingEvent* slots_ = nullptr;
  uint64_t capacity_ = 0;
  uint64_t capture_ = 0;
  uint64_t first_ = 0;  // oldest event that is neither fetched nor overwritten
  uint64_t end_ = 0;
  RingTotals totals_;
  EventTypeSet types_;
  // Of its own; continues from capture to capture, so that spans of two captures never pair.
  std::atomic<uint64_t> tracking_{1};
};

}  // namespace neurontrace
