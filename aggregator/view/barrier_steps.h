// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aggregator/derive/collectives.h"

namespace neurontrace {

// Divides the time of every core into steps without a framework's help: a step is the stretch
// between two successive matched barriers of a core, from leaving the first to arriving at the
// second. Steps are numbered from 0 in the order of barriers; that before the first has number 0.
// All cores of a barrier end a step of one number, the highest that any of them has reached. Used
// by one thread at a time.
class BarrierSteps {
 public:
  // The barrier that a core left last.
  struct Left {
    uint64_t barrier = 0;  // Collective::number; 0: none, or it is not known when it was left
    uint64_t left_ns = 0;
    RecordBounds::Moment bound;  // of its arrival there
  };

  explicit BarrierSteps(size_t streams) : cores_(streams) {}

  // Returns whether the collective ends steps: a host's barrier of at least two cores that met.
  static bool IsBoundary(const Collective& collective);
  // Returns the number of the step in which the collective is.
  uint64_t NumberOf(const Collective& collective) const;
  const Left& left(uint32_t stream) const { return cores_[stream].left; }
  // Ends the step of all members. Requires IsBoundary.
  void Advance(const Collective& barrier);
  // Boundaries so far.
  uint64_t boundaries() const { return boundaries_; }

 private:
  struct CoreSteps {
    uint64_t number = 0;
    Left left;
  };
  std::vector<CoreSteps> cores_;  // by stream
  uint64_t boundaries_ = 0;
};

}  // namespace neurontrace
