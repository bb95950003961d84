// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tests/clock_sim/barrier_world.h"
#include "tests/clock_sim/host_score.h"
#include "tests/clock_sim/log_histogram.h"

namespace neurontrace {

// Of the product's models, before the causal pass or after it.
struct CausalState {
  LogHistogram pair;   // error between two hosts, ns
  LogHistogram bound;  // of a pair of hosts, ns
  Share stamps_covered;
  Share pairs_covered;
  Share in_order;      // barriers that the pass accepted: none left before the last entered
  LogHistogram worst;  // of the others, by how much
};

struct CausalScore {
  CausalState before;
  CausalState after;
  // Of pairs as the constraints that connect them tell, after the pass: half of what is open, and
  // whether the truth is in it.
  LogHistogram joint_bound;
  Share joint_covered;
  Share accepted;              // barriers that were what their events say
  Share mislabelled_rejected;  // barriers that were not
  uint64_t stamps = 0;         // of barriers
  uint64_t pass_ns = 0;        // processor time
  uint64_t runs_refused = 0;   // the pass gave an error

  void Merge(const CausalScore& other);
};

// One run: fits each host, and lets the causal pass move their clocks.
CausalScore RunCausalTrial(const BarrierScenario& scenario, uint64_t seed);

}  // namespace neurontrace
