// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace neurontrace {

// How one clock's time x becomes another's, y: a device's to its host's, a host's raw to the
// reference. A value that says what was derived, from how much evidence and how; the map that
// events go through is made of it.

// Values are in stores: never change one.
enum class SegmentCause : uint8_t {
  kBegin = 0,          // the first evidence
  kHostEvent = 1,      // the host said so: a migration, a pause, a suspend
  kContradiction = 2,  // the evidence before and after cannot be of one smooth clock
  kDetected = 3,       // a step smaller than what could contradict, seen all the same
  kCounterReset = 4,   // of a device
  kReferenceEpoch = 5,
};

// Between two knots y runs linearly.
struct ClockKnot {
  uint64_t x_ns = 0;
  uint64_t y_ns = 0;
  // |truth - y| is at most this: whatever the delays were, if the clock wanders no faster than the
  // model's parameters say. At a time between two knots: the larger of theirs.
  uint64_t bound_ns = 0;
  // The same if, besides, the least delay is equal in both directions. At most bound_ns.
  uint64_t likely_bound_ns = 0;
  friend bool operator==(const ClockKnot&, const ClockKnot&) = default;
};

// A stretch in which the clock ran smoothly. Segments follow each other; a time between two of them
// may belong to either, and is bounded by both.
struct ClockSegment {
  SegmentCause cause = SegmentCause::kBegin;
  std::vector<ClockKnot> knots;  // at least one, ascending
  friend bool operator==(const ClockSegment&, const ClockSegment&) = default;
};

// Values are in stores: never change one.
enum class ClockFindingKind : uint8_t {
  kBreak = 0,             // a new segment begins
  kRejectedEvidence = 1,  // contradicted better evidence, and was left out
  kRouteChange = 2,       // the least delay has changed
  kInconsistent = 3,      // could not be resolved: bounds there are those of both readings
};

// What people are told about a clock.
struct ClockFinding {
  ClockFindingKind kind = ClockFindingKind::kBreak;
  uint64_t x_begin_ns = 0;
  uint64_t x_end_ns = 0;
  int64_t amount_ns =
      0;  // of a break: by how much y - x stepped; of evidence: by how much it was off
  std::string words;
  friend bool operator==(const ClockFinding&, const ClockFinding&) = default;
};

struct ClockModel {
  uint32_t algorithm_version = 0;  // equal versions and evidence give equal models, bit for bit
  std::vector<ClockSegment> segments;
  std::vector<ClockFinding> findings;
  uint32_t wander_ns_per_s2 = 0;  // the bounds hold while the rate changes no faster than this
  uint64_t evidence_used = 0;     // constraints
  uint64_t evidence_rejected = 0;
  friend bool operator==(const ClockModel&, const ClockModel&) = default;
};

}  // namespace neurontrace
