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

// What a host's readings of UTC say of its raw clock by the reference, when the reference's keeper
// knows UTC as well: constraints, each as good as two promises.
//
// Nobody can check a promise, so none narrows what is possible: that is proved by probes alone, and
// a source that lies cannot break it. Promises narrow what is likely, together with the assumption
// that probes take as long there as back. That one nobody promises: where UTC contradicts it, it is
// given up, and UTC says by how much the ways differ.

// A reading on its way through the fit.
struct HostUtcReading {
  uint64_t x_ns = 0;  // raw
  uint64_t y_min_ns = 0;
  uint64_t y_max_ns = 0;
  UtcSource source = UtcSource::kUnspecified;
};

// The host's readings as times of the reference, in ascending order of raw, between two of raw.
std::vector<HostUtcReading> HostReadingsOf(std::span<const UtcReading> readings,
                                           const ReferenceUtc::Epoch& epoch, uint64_t x_begin_ns,
                                           uint64_t x_end_ns);

struct HostUtcJudgement {
  // A ClockConstraint::source that is no exchange.
  static constexpr uint32_t kSource = std::numeric_limits<uint32_t>::max();

  // They say something that the probes did not: the fit is worth doing again with what follows.
  bool says_more = false;
  // By how much the probes' likely sides move up, and by how much they give way besides. 0: the
  // ways may be equally long.
  double shift_ns = 0;
  double margin_ns = 0;
  std::vector<ClockConstraint> constraints;  // likely sides alone, ascending
  uint64_t rejected = 0;
  std::vector<ClockFinding> findings;  // what was left out, and what the ways differ by
};

// Judges the readings (ascending) of one stretch by what the probes in it say. Who contradicts what
// probes prove is left out; of the others, who contradicts a more trusted source, or the most of
// his own readings. `of_reference` has the sources behind the reference's own UTC.
HostUtcJudgement JudgeUtc(std::span<const HostUtcReading> readings, const ClockSegment& by_probes,
                          std::span<const UtcSource> of_reference);

// The probes' constraints with their likely sides moved, and those of UTC among them.
std::vector<ClockConstraint> WithUtc(std::vector<ClockConstraint> probes,
                                     const HostUtcJudgement& utc);

}  // namespace neurontrace
