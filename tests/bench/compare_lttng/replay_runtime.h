// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/bench/compare_lttng/event_pool.h"

namespace neurontrace {

// The runtime of the replay's libnrt.so.1: the comparison's events as the text that the
// runtime would make of them, written before the clock starts, so that recording and writing JSON
// cost the measurement nothing. Events fall due at their rate; a core's "ring" forgets the oldest
// of those that are due and were not fetched, as the runtime's does. Any thread.
class ReplayRuntime {
 public:
  static ReplayRuntime& Get();

  void Begin(uint64_t seed, uint32_t cores, uint32_t first_gid);
  uint32_t cores() const { return cores_count_; }

  // Begins a capture without events.
  void StartTrace(uint64_t ring_events);
  void StopTrace();

  struct Sums {
    uint64_t emitted = 0;
    uint64_t taken = 0;
    double seconds = 0;
  };
  // Writes the texts of `events` events, lets them fall due and returns when the last one has.
  Sums Run(uint64_t events, double rate);

  // A document of what is due of one core, `events_max` at most, NUL-terminated; nullptr while no
  // capture runs. Belongs to the caller until ReleaseBuffer.
  char* Fetch(uint32_t core, uint64_t events_max, size_t& bytes);
  void ReleaseBuffer(char* document);

 private:
  struct Core {
    std::string text;               // the events, a comma behind each
    std::vector<uint64_t> offsets;  // of each event's begin, and of the end
    uint64_t next = 0;              // not fetched yet
  };

  static void Write(Core& core, uint32_t nc_idx, const compare_event& event);
  uint64_t DueOf(const Core& core, uint64_t now_ns) const;

  std::unique_ptr<EventPool> pool_;
  uint32_t cores_count_ = 0;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<Core> cores_;
  uint64_t ring_events_ = 0;  // 0: no capture
  uint64_t begin_ns_ = 0;     // monotonic, of the run
  double core_rate_ = 0;      // events a nanosecond
  char* spare_ = nullptr;     // a document's memory, kept for the next
  size_t spare_bytes_ = 0;
};

}  // namespace neurontrace
