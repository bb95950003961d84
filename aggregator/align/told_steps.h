// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "trace/clock_evidence.h"

namespace neurontrace {

// The steps of REALTIME that a host told of, for questions about one stretch of raw after another:
// each takes the logarithm of their number, however long and entangled they are.
class ToldSteps {
 public:
  using Ends = std::pair<const ClockEvent*, const ClockEvent*>;

  // `events` outlive it, and are in ascending order of raw.
  explicit ToldSteps(std::span<const ClockEvent> events);

  // The first and the last, in their order, that begin before `end_ns` and end after `begin_ns`.
  std::optional<Ends> Between(uint64_t begin_ns, uint64_t end_ns) const;

 private:
  std::vector<const ClockEvent*> steps_;
  // A tree over their ends: the latest of all below a node; node n is above 2n and 2n + 1, and the
  // last leaves_ nodes are the steps.
  size_t leaves_ = 1;
  std::vector<uint64_t> latest_;
};

}  // namespace neurontrace
