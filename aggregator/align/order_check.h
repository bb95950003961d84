// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace neurontrace {

// One collective or barrier that a member is shown to leave before another, on another instance,
// has entered it.
struct OrderViolation {
  uint64_t reference_ns = 0;  // when it is shown to be left
  int64_t amount_ns = 0;      // so much before it was entered
  uint64_t bound_ns = 0;      // how far the two times can be off together
  uint64_t exec_id = 0;
  uint64_t operation = 0;  // op_id; of a barrier 0
  std::string entered_by;  // instance ids
  std::string left_by;
  friend bool operator==(const OrderViolation&, const OrderViolation&) = default;

  bool is_within_bounds() const { return static_cast<uint64_t>(amount_ns) <= bound_ns; }
};

// Whether times show what happened on several instances in an order that it can have had: nobody
// leaves a collective before everybody has entered it. It is only looked at; no clock is moved by
// it. Collectives are matched by the execution's number and op_id among the cores of one job, which
// no public word about the runtime says is right: where it is not, that shows in amounts far beyond
// the clocks' bounds, and nothing is concluded (aggregator/clocks/collective_matcher.h).
struct OrderCheck {
  std::string job;         // empty: none is known, and that of the world size is meant
  int64_t world_size = 0;  // cores in the job
  std::string event_type;  // "cc_running", "enc_barrier"
  uint64_t events = 0;     // parts in one, of all cores
  uint64_t left_out = 0;   // of these: without a partner on another instance, a number or a clock
  uint64_t instances = 0;  // collectives, or barriers, of cores on several instances
  uint64_t violated = 0;   // of these
  uint64_t beyond_bounds = 0;  // of these: by more than the clocks' bounds explain
  int64_t worst_ns = 0;        // the largest amount
  // What was compared belongs together, as far as can be told: else see words.
  bool is_conclusive = false;
  std::vector<OrderViolation> violations;  // the worst, by time; none where not conclusive
  std::string words;
  friend bool operator==(const OrderCheck&, const OrderCheck&) = default;
};

}  // namespace neurontrace
