// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "aggregator/align/device/device_clock.h"
#include "aggregator/align/device/sync_envelope.h"

namespace neurontrace {

struct SyncParameters {
  // What is known of the runtime; kUnknown: learned from the data, and only the likely bound and
  // the estimate rely on it.
  SyncOrder order = SyncOrder::kUnknown;
  // Even the quickest pair of readings is not farther apart: an assumption.
  double apart_least_ns = 3'000;
  // How far a pair may be beyond what is usual: this, and ten times what is usual.
  double gate_ns = 50'000;
  EnvelopeParameters envelope;
};

// Which of the readings comes first. Delays only ever add, so the points crowd at the one envelope
// and straggle towards the other.
class SyncOrderVote {
 public:
  void Add(std::span<const SyncSample> samples, const SyncParameters& parameters);
  SyncOrder Result() const;

 private:
  std::vector<double> above_lower_;
  std::vector<double> below_upper_;
};

// What the sync points of one segment say of its curve.
struct SyncJudgement {
  // Of each sample: between these is the curve, if the assumption holds; infinite: not known.
  std::vector<Interval> likely;
  // Of each sample: how far the curve may be beyond that after all, as few others speak of it.
  std::vector<double> allowance;
  // Samples that cannot be what they should be: they say nothing.
  std::vector<bool> rejected;
};

// `samples` ascend in time and are those that the gate let through. `order` is what was learned or
// is known.
SyncJudgement JudgeSyncPoints(std::span<const SyncSample> samples, SyncOrder order,
                              const SyncParameters& parameters);

}  // namespace neurontrace
