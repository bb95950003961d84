// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/device/sync_envelope.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace neurontrace {
namespace {

// The envelope at a sample is the maximum over the rate of the lowest of the lines that its
// neighbours define. It is found by stepping to where the best line from the past meets the best
// from the future: a cutting-plane method. Each sample costs at most kSteps passes over 2 *
// kNeighbours neighbours, so an envelope is linear in the samples.

// Neighbours on either side that are considered. Distant ones would have to be better by what a
// clock wanders in between.
constexpr size_t kNeighbours = 32;
constexpr double kFarthestS = 60;
// Lines that the search for the top considers at most. Each step finds a new one, and few matter.
constexpr int kSteps = 64;

// Indices of samples, the end excluded.
struct Window {
  size_t begin;
  size_t end;
};

// Returns the neighbours of sample i, itself included.
Window WindowOf(std::span<const SyncSample> samples, size_t i) {
  Window window{i > kNeighbours ? i - kNeighbours : 0,
                std::min(samples.size(), i + kNeighbours + 1)};
  while (samples[i].seconds - samples[window.begin].seconds > kFarthestS) ++window.begin;
  while (samples[window.end - 1].seconds - samples[i].seconds > kFarthestS) --window.end;
  return window;
}

// A curve with the value a and the rate b at sample i is below sample j if
//   a <= offset_j - b d + wander d^2 / 2,    d = seconds_j - seconds_i.
// The minimum of these lines over j is a concave function of b, and its maximum is the envelope.
struct Line {
  double at_zero = INFINITY;
  double d = 0;
  double At(double b) const { return at_zero - b * d; }
};

// Returns the lowest of the lines at the rate b, over the window except sample `without`.
Line LowestLine(std::span<const SyncSample> samples, Window window, size_t i, size_t without,
                double b, double wander) {
  Line lowest;
  double least = INFINITY;
  for (size_t j = window.begin; j < window.end; ++j) {
    if (j == without) continue;
    const double d = samples[j].seconds - samples[i].seconds;
    const Line line{samples[j].offset + wander * d * d / 2, d};
    if (line.At(b) < least) least = line.At(b), lowest = line;
  }
  return lowest;
}

// Moves to where the best lines so far from past and future intersect, until no other line is below
// that point. Returns the envelope at sample i; INFINITY if the window has no other sample.
double HighestAt(std::span<const SyncSample> samples, size_t i, size_t without,
                 const EnvelopeParameters& parameters) {
  const Window window = WindowOf(samples, i);
  const Interval rate = parameters.rate;
  Line past;
  Line future;
  double b = rate.middle();
  double highest = INFINITY;
  for (int k = 0; k < kSteps; ++k) {
    const Line lowest = LowestLine(samples, window, i, without, b, parameters.wander_ns_per_s2);
    highest = lowest.At(b);
    if (lowest.d == 0) break;
    Line& side = lowest.d < 0 ? past : future;
    if (lowest.d == side.d && lowest.at_zero == side.at_zero) break;
    side = lowest;
    if (past.d == 0) {
      b = rate.min;
    } else if (future.d == 0) {
      b = rate.max;
    } else {
      b = std::clamp((future.at_zero - past.at_zero) / (future.d - past.d), rate.min, rate.max);
    }
  }
  return highest;
}

// Returns the envelope at each sample, with or without the sample's own line.
std::vector<double> Envelope(std::span<const SyncSample> samples, bool with_itself,
                             const EnvelopeParameters& parameters) {
  std::vector<double> envelope(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    envelope[i] = HighestAt(samples, i, with_itself ? samples.size() : i, parameters);
  }
  return envelope;
}

}  // namespace

std::vector<double> LowerEnvelope(std::span<const SyncSample> samples,
                                  const EnvelopeParameters& parameters) {
  return Envelope(samples, true, parameters);
}

std::vector<double> LowerEnvelopeOfOthers(std::span<const SyncSample> samples,
                                          const EnvelopeParameters& parameters) {
  return Envelope(samples, false, parameters);
}

std::vector<double> UpperEnvelope(std::span<const SyncSample> samples,
                                  const EnvelopeParameters& parameters) {
  // The lower envelope of the mirrored samples, mirrored back.
  std::vector<SyncSample> mirrored(samples.begin(), samples.end());
  for (SyncSample& sample : mirrored) sample.offset = -sample.offset;
  std::vector<double> envelope = Envelope(
      mirrored, true, {parameters.wander_ns_per_s2, {-parameters.rate.max, -parameters.rate.min}});
  for (double& offset : envelope) offset = -offset;
  return envelope;
}

std::vector<double> EnvelopeSupport(std::span<const SyncSample> samples, double spread,
                                    const EnvelopeParameters& parameters) {
  std::vector<double> support(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    const Window window = WindowOf(samples, i);
    double past = 0;
    double future = 0;
    for (size_t j = window.begin; j < window.end; ++j) {
      const double d = samples[j].seconds - samples[i].seconds;
      // A spread below 1 ns would divide by nearly nothing.
      const double weight =
          std::max(0.0, 1 - parameters.wander_ns_per_s2 * d * d / 2 / std::max(spread, 1.0));
      if (j < i) past += weight;
      if (j > i) future += weight;
    }
    support[i] = std::min(past, future);
  }
  return support;
}

double QuantileOf(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

}  // namespace neurontrace
