// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <vector>

namespace neurontrace {

// Numbers that depend on a seed and a place (step, barrier, rank …) and on nothing else: every
// process that asks for the same place gets the same number, in whatever order it asks.
class PlacedRandom {
 public:
  explicit PlacedRandom(uint64_t seed) : seed_(seed) {}

  uint64_t Bits(std::initializer_list<uint64_t> place) const {
    uint64_t hash = seed_;
    for (const uint64_t part : place) hash = Scramble(hash ^ Scramble(part + 0x9e3779b97f4a7c15));
    return hash;
  }
  // In [0, 1).
  double Unit(std::initializer_list<uint64_t> place) const {
    return static_cast<double>(Bits(place) >> 11) * 0x1p-53;
  }
  double Between(double low, double high, std::initializer_list<uint64_t> place) const {
    return low + (high - low) * Unit(place);
  }

 private:
  static uint64_t Scramble(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
  }
  uint64_t seed_;
};

struct ScheduleOptions {
  uint64_t seed = 1;
  uint32_t world_size = 1;
  int64_t start_at_ns = 0;   // true time of step 0
  int64_t period_ns = 0;     // of one step, before a straggler stretches it
  uint32_t collectives = 0;  // per step
  int64_t host_work_ns = 0;  // per step and rank, before nrt_execute; makes a step longer
  int64_t straggler_rank = -1;
  int64_t straggler_extra_ns = 0;  // how late that rank enters each barrier …
  int64_t straggler_after_ns = 0;  // … of steps that begin so long after the first one
};

// When a rank enters and leaves one barrier, in true time.
struct BarrierTimes {
  int64_t enter_ns;
  int64_t exit_ns;
};

// The fixed points of one step of one rank, in true time.
struct RankStep {
  int64_t begin_ns;                       // the host begins to prepare tensors
  int64_t execute_ns;                     // nrt_execute
  int64_t core_ns;                        // kbl_exec_core
  BarrierTimes host_barrier;              // enc_barrier
  int64_t device_start_ns;                // nc_exec_running
  BarrierTimes device_barrier;            // cc_exec_barrier
  std::vector<BarrierTimes> collectives;  // cc_running
  int64_t device_stop_ns;
};

// How much later than computed a step is, because measured work took longer than planned.
struct StepDelay {
  int64_t begin_ns = 0;  // of the whole step, because of the steps before
  int64_t own_ns = 0;    // of this rank, from nrt_execute until it enters the host barrier
  int64_t job_ns = 0;    // of all ranks once they leave that barrier: the last one's own_ns
};

// The same step later.
RankStep Delayed(RankStep step, const StepDelay& delay);

// The virtual true time that all ranks of a job share. Each process computes it alone from the same
// options and comes to the same result, so that a barrier holds across processes and instances: no
// member leaves before the last one has entered. Thread-safe.
class Schedule {
 public:
  explicit Schedule(const ScheduleOptions& options);

  // Length of a step, the straggler's delays included: no step begins before the last one ended.
  int64_t period_ns() const { return period_ns_; }
  // Unit of what the host does around the device, at most 10 ms.
  int64_t host_unit_ns() const { return host_unit_ns_; }
  int64_t StepBegin(uint64_t step) const;
  // The first step that begins at or after this moment.
  uint64_t FirstStepFrom(int64_t true_ns) const;

  RankStep Rank(uint64_t step, uint32_t rank) const;
  const PlacedRandom& random() const { return random_; }

 private:
  // For each barrier of a step the moment from which members may leave.
  using Releases = std::vector<int64_t>;
  std::shared_ptr<const Releases> ReleasesOf(uint64_t step) const;
  Releases ComputeReleases(uint64_t step) const;

  int64_t HostEnter(uint64_t step, uint32_t rank) const;
  int64_t DeviceStart(uint64_t step, uint32_t rank) const;
  int64_t Enter(uint64_t step, uint32_t barrier, uint32_t rank, int64_t release_before) const;
  int64_t Exit(uint64_t step, uint32_t barrier, uint32_t rank, int64_t release) const;
  int64_t Lateness(uint64_t step, uint32_t rank) const;

  const ScheduleOptions options_;
  const PlacedRandom random_;
  const int64_t host_unit_ns_;
  const int64_t period_ns_;
  mutable std::mutex mutex_;
  // The latest steps; guarded by mutex_.
  mutable std::deque<std::pair<uint64_t, std::shared_ptr<const Releases>>> recent_;
};

}  // namespace neurontrace
