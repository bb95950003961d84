// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "aggregator/align/core/wander_polygon.h"

namespace neurontrace {

// A sync point as the fit sees it: where one clock was by the other, give or take a delay.
struct SyncSample {
  double seconds = 0;
  double offset = 0;
};

struct EnvelopeParameters {
  double wander_ns_per_s2 = 50;
  Interval rate{-600'000, 600'000};
};

// For each sample, how high a curve can be there that lies above none, without bending more than
// the wander allows: near it, if delays are now and then short. The samples ascend in time.
std::vector<double> LowerEnvelope(std::span<const SyncSample> samples,
                                  const EnvelopeParameters& parameters);
// The same by the others alone: what a sample itself is judged by.
std::vector<double> LowerEnvelopeOfOthers(std::span<const SyncSample> samples,
                                          const EnvelopeParameters& parameters);
// How low a curve can be that lies below none.
std::vector<double> UpperEnvelope(std::span<const SyncSample> samples,
                                  const EnvelopeParameters& parameters);

// For each sample, how many others on the worse side in time speak of it, those far away less: as
// one that bends by `wander` is no more than `spread` away. Without any, an envelope says nothing.
std::vector<double> EnvelopeSupport(std::span<const SyncSample> samples, double spread,
                                    const EnvelopeParameters& parameters);

// The value below which the part `share` of them lies; 0 of none.
double QuantileOf(std::vector<double> values, double share);

}  // namespace neurontrace
