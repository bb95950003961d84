// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tests/fake_nrt/stop_signal.h"

namespace neurontrace {

// Where the ranks of a job wait for each other in each step, through a file that their processes
// map. A computed schedule cannot know how late measured work makes a rank; here it tells the
// others. A rank that ends or stops makes all others wait until they are stopped. Each run of a job
// needs a new file. Any thread may call, one per rank.
class StepMeeting {
 public:
  // Creates the file unless another process has. Check ok() before use.
  StepMeeting(const std::string& path, uint32_t world_size);
  ~StepMeeting();
  StepMeeting(const StepMeeting&) = delete;
  StepMeeting& operator=(const StepMeeting&) = delete;

  bool ok() const { return places_ != nullptr; }

  // Tells all how late this rank is in this step. Steps are consecutive from 0, and WaitForAll of
  // the step before has returned.
  void Arrive(uint64_t step, uint32_t rank, int64_t late_ns);
  // Returns the greatest lateness of the step once all have arrived, nothing if `stop` was raised.
  std::optional<int64_t> WaitForAll(uint64_t step, const StopSignal& stop) const;

 private:
  struct Place {
    std::atomic<uint64_t> arrived;  // number of steps, this one included
    std::atomic<int64_t> late_ns;
  };
  // Nobody is more than one step ahead, so two places of each rank suffice.
  Place& PlaceOf(uint64_t step, uint32_t rank) const {
    return places_[step % 2 * world_size_ + rank];
  }

  const uint32_t world_size_;
  size_t bytes_ = 0;
  Place* places_ = nullptr;
};

}  // namespace neurontrace
