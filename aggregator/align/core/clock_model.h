// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace neurontrace {

// How one clock's time x becomes another's, y: a device's to its host's, or a host's raw to the
// reference. A model states what was derived, how, and from how much evidence; the ClockMap that
// events go through is made of it. Plain values.
//
// Why a segment begins. Stored: never change a value.
enum class SegmentCause : uint8_t {
  kBegin = 0,          // the first evidence
  kHostEvent = 1,      // reported by the host: a migration, a pause, a suspend
  kContradiction = 2,  // the evidence before and after cannot be of one smooth clock
  kDetected = 3,       // a step that delays could explain, recognised all the same
  kCounterReset = 4,   // of a device
  kReferenceEpoch = 5,
};

// A point of the curve; y is linear between two knots. All times are whole nanoseconds, except that
// the x of a device is its counter.
struct ClockKnot {
  uint64_t x_ns = 0;
  uint64_t y_ns = 0;
  // |truth - y| is at most this, whatever the delays were, if the clock wanders no faster than the
  // model states. Between two knots the larger bound applies.
  uint64_t bound_ns = 0;
  // The same if, in addition, the least delay is equal in both directions. At most bound_ns.
  uint64_t likely_bound_ns = 0;
  friend bool operator==(const ClockKnot&, const ClockKnot&) = default;
};

// An interval in which the clock ran smoothly. Segments follow each other; a time between two may
// belong to either and is bounded by both.
struct ClockSegment {
  SegmentCause cause = SegmentCause::kBegin;
  std::vector<ClockKnot> knots;  // at least one, ascending in x
  friend bool operator==(const ClockSegment&, const ClockSegment&) = default;
};

// Stored: never change a value. A finding changes no estimate: the bounds already include its
// effect.
enum class ClockFindingKind : uint8_t {
  kBreak = 0,             // a new segment begins
  kRejectedEvidence = 1,  // contradicted better evidence and was not used
  kRouteChange = 2,       // the least delay has changed
  kInconsistent = 3,      // unresolved: bounds there include both readings
};

// Something that people should know about a clock. The times are those of the model's own x.
// FitHostClock limits their number, and its last finding counts the rest.
struct ClockFinding {
  ClockFindingKind kind = ClockFindingKind::kBreak;
  uint64_t x_begin_ns = 0;
  uint64_t x_end_ns = 0;
  int64_t amount_ns =
      0;  // of a break: by how much y - x stepped; of evidence: by how much it was off
  // A sentence without a full stop, for people.
  std::string words;
  friend bool operator==(const ClockFinding&, const ClockFinding&) = default;
};

// The result of a fit. Without segments nothing is known, and readers use y = x without a bound.
struct ClockModel {
  uint32_t algorithm_version = 0;  // equal version and evidence give equal bits
  std::vector<ClockSegment> segments;
  std::vector<ClockFinding> findings;
  uint32_t wander_ns_per_s2 = 0;  // bounds hold while the rate changes no faster
  uint64_t evidence_used = 0;     // in constraints
  uint64_t evidence_rejected = 0;
  friend bool operator==(const ClockModel&, const ClockModel&) = default;
};

}  // namespace neurontrace
