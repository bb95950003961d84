// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "aggregator/align/device/device_clock.h"
#include "aggregator/align/device/sync_envelope.h"

namespace neurontrace {

// Assumptions about sync points.
struct SyncParameters {
  // Known order of the readings. kUnknown: learned from the data; then only the likely bound and
  // the estimate rely on it.
  SyncOrder order = SyncOrder::kUnknown;
  // Assumed: even the quickest pair of readings is no farther apart than this.
  double apart_least_ns = 3'000;
  // How far a pair may exceed the usual distance: this plus ten times the usual distance.
  double gate_ns = 50'000;
  EnvelopeParameters envelope;
};

// Learns which reading comes first. Delays only ever add, so the points crowd at one envelope and
// scatter towards the other. One vote is over all parts of a device, because the order is a
// property of the runtime.
class SyncOrderVote {
 public:
  // Samples are in ascending order of time.
  void Add(std::span<const SyncSample> samples, const SyncParameters& parameters);
  // Returns kUnknown if there were too few.
  SyncOrder Result() const;

 private:
  std::vector<double> above_lower_;
  std::vector<double> below_upper_;
};

// The judgement of the sync points of one segment about its curve. All vectors have an element for
// each sample.
struct SyncClassification {
  // For each sample, the interval of the curve if the assumption holds; infinite: unknown.
  std::vector<Interval> likely;
  // For each sample, how far the curve may still be beyond that because few others support it.
  std::vector<double> allowance;
  // Samples that cannot be what they should be and are not used.
  std::vector<bool> rejected;
};

// Requires samples in ascending order of time that passed the gate. `order` is learned or known.
// Pure.
SyncClassification ClassifySyncPoints(std::span<const SyncSample> samples, SyncOrder order,
                                      const SyncParameters& parameters);

}  // namespace neurontrace
