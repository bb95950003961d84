// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "aggregator/align/core/clock_model.h"
#include "aggregator/align/core/pair_clock.h"
#include "aggregator/align/utc/reference_utc.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Derives constraints on a host's raw clock by the reference from readings of UTC on both hosts.
// Each constraint is as good as the promises of two sources.
//
// A promise cannot be checked, so none narrows what is possible: only probes prove that, and a
// source that lies cannot break it. Promises narrow what is likely, together with the assumption
// that probes take equally long in both directions. If UTC contradicts that assumption, it is
// dropped, and UTC shows by how much the directions differ.

// A reading while it is fitted.
struct HostUtcReading {
  uint64_t x_ns = 0;  // raw
  uint64_t y_min_ns = 0;
  uint64_t y_max_ns = 0;
  UtcSource source = UtcSource::kUnspecified;
};

// Returns the host's readings between two times of raw as reference times, in ascending order of
// raw.
std::vector<HostUtcReading> HostReadingsOf(std::span<const UtcReading> readings,
                                           const ReferenceUtc::Epoch& epoch, uint64_t x_begin_ns,
                                           uint64_t x_end_ns);

// The result of EvaluateUtc. The default adds nothing.
struct HostUtcEvaluation {
  // A ClockConstraint::source that is no exchange.
  static constexpr uint32_t kSource = std::numeric_limits<uint32_t>::max();

  // They add to what the probes said: fitting again with the following is worthwhile.
  bool is_tighter = false;
  // How far the probes' likely sides move up, and how far they are widened in addition. 0: the
  // directions may take equally long.
  double shift_ns = 0;
  double margin_ns = 0;
  std::vector<ClockConstraint> constraints;  // likely sides only, ascending
  uint64_t rejected = 0;
  std::vector<ClockFinding> findings;  // rejected readings, and unequal directions
};

// Judges the readings (ascending) of one stretch by its probes. Readings that contradict what
// probes prove are rejected. So are those that contradict a more trusted source or most readings of
// their own source. `of_reference` are the sources behind the reference's own UTC. Pure.
HostUtcEvaluation EvaluateUtc(std::span<const HostUtcReading> readings,
                              const ClockSegment& by_probes,
                              std::span<const UtcSource> of_reference);

// Returns the probes' constraints with their likely sides moved, merged with those of UTC.
std::vector<ClockConstraint> WithUtc(std::vector<ClockConstraint> probes,
                                     const HostUtcEvaluation& utc);

}  // namespace neurontrace
