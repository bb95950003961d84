// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "aggregator/align/core/wander_polygon.h"

namespace neurontrace {

// A sync point as the fit sees it: one clock by the other, up to a delay.
struct SyncSample {
  double seconds = 0;  // since the fit's origin
  double offset = 0;   // ns
};

// How a curve may bend. The rate is of the offset, in ns/s.
struct EnvelopeParameters {
  double wander_ns_per_s2 = 50;
  Interval rate{-600'000, 600'000};
};

// Returns for each sample how high a curve below all samples can be there if it bends no more than
// the wander allows. Delays only ever add, so the curve is near this wherever delays are sometimes
// short; it is the smooth version of the lower convex hull. Requires samples in ascending order of
// time. Values are in ns; INFINITY without a sample to compare with.
std::vector<double> LowerEnvelope(std::span<const SyncSample> samples,
                                  const EnvelopeParameters& parameters);
// Returns the same without the sample itself, by which a sample can be judged.
std::vector<double> LowerEnvelopeOfOthers(std::span<const SyncSample> samples,
                                          const EnvelopeParameters& parameters);
// Returns how low a curve above all samples can be.
std::vector<double> UpperEnvelope(std::span<const SyncSample> samples,
                                  const EnvelopeParameters& parameters);

// Returns for each sample how many others support the envelope there, on the side in time with
// fewer. Distant ones count less: one counts as long as a curve that bends by `wander` stays within
// `spread`. Without support an envelope says nothing.
std::vector<double> EnvelopeSupport(std::span<const SyncSample> samples, double spread,
                                    const EnvelopeParameters& parameters);

// Returns the value below which the given share of the values lies; 0 if there are none. `share` is
// from 0 to 1.
double QuantileOf(std::vector<double> values, double share);

}  // namespace neurontrace
