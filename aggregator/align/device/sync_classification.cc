// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/device/sync_classification.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace neurontrace {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// With fewer neighbours on either side an envelope may be anywhere above the curve.
constexpr double kSupportMin = 1;
// Noise is never assumed to be less than this: the cost of reading a host's clock.
constexpr double kNoiseMinNs = 100;
// Fewer points cannot vote.
constexpr size_t kVotesMin = 8;
// How much nearer to one envelope than to the other half of the points must be. Exponential delays
// give 0.3, symmetric ones 1.
constexpr double kCrowding = 0.6;

// Turns early into late: what holds for one holds for the other with all signs changed.
std::vector<SyncSample> Mirror(std::span<const SyncSample> samples) {
  std::vector<SyncSample> mirrored(samples.begin(), samples.end());
  for (SyncSample& sample : mirrored) sample.offset = -sample.offset;
  return mirrored;
}

EnvelopeParameters Mirror(const EnvelopeParameters& parameters) {
  return {parameters.wander_ns_per_s2, {-parameters.rate.max, -parameters.rate.min}};
}

// How far an envelope is above its curve. With n supporting samples, each late by an exponential
// time with mean m, that is 2 m/n on average and hardly ever more than 6 m/n.
class EnvelopeNoise {
 public:
  EnvelopeNoise(std::span<const SyncSample> samples, const std::vector<double>& envelope,
                double apart_least_ns, const EnvelopeParameters& parameters) {
    std::vector<double> beyond(samples.size());
    for (size_t i = 0; i < samples.size(); ++i) beyond[i] = samples[i].offset - envelope[i];
    const double mean = QuantileOf(std::move(beyond), 0.5) / std::numbers::ln2;
    support_ = EnvelopeSupport(samples, apart_least_ns + mean, parameters);
    const double speaking = 1 + 2 * QuantileOf(support_, 0.5);
    // The distance of samples from the envelope is too small by what the envelope is above the
    // curve.
    mean_ = std::max(kNoiseMinNs, mean / std::max(0.3, 1 - 2 / speaking));
  }
  // The mean delay, in ns.
  double mean() const { return mean_; }
  bool IsSupported(size_t i) const { return support_[i] >= kSupportMin; }
  // Return the expected and the largest credible distance of the envelope from the curve at sample
  // i.
  double Expected(size_t i) const { return 2 * mean_ / (1 + 2 * support_[i]); }
  double Most(size_t i) const { return 3 * Expected(i); }

 private:
  std::vector<double> support_;
  double mean_ = 0;
};

// Judges samples whose delays make the offset larger.
SyncClassification ClassifyLate(std::span<const SyncSample> samples, double apart_least_ns,
                                const EnvelopeParameters& parameters) {
  SyncClassification judgement;
  judgement.rejected.assign(samples.size(), false);
  judgement.likely.assign(samples.size(), {-kInfinity, kInfinity});
  judgement.allowance.assign(samples.size(), 0);
  // The first pass uses all samples, to find those that cannot be right; the second one does
  // without them.
  const EnvelopeNoise noise(samples, LowerEnvelope(samples, parameters), apart_least_ns,
                            parameters);
  // A sample far below where all others put the curve was not read when it claims.
  const std::vector<double> others = LowerEnvelopeOfOthers(samples, parameters);
  std::vector<SyncSample> kept;
  std::vector<size_t> index;
  for (size_t i = 0; i < samples.size(); ++i) {
    judgement.rejected[i] = noise.IsSupported(i) &&
                            samples[i].offset < others[i] - 2 * apart_least_ns - 8 * noise.mean();
    if (judgement.rejected[i]) continue;
    kept.push_back(samples[i]);
    index.push_back(i);
  }
  const std::vector<double> envelope = LowerEnvelope(kept, parameters);
  const EnvelopeNoise left(kept, envelope, apart_least_ns, parameters);
  for (size_t k = 0; k < kept.size(); ++k) {
    // The sample itself is late, so the curve is not above it.
    Interval& likely = judgement.likely[index[k]];
    likely.max = kept[k].offset;
    if (!left.IsSupported(k)) continue;
    likely.min = envelope[k] - apart_least_ns - left.Expected(k);
    judgement.allowance[index[k]] = left.Most(k) - left.Expected(k);
  }
  return judgement;
}

// Judges samples that are as often early as late: only their spread is known.
SyncClassification ClassifySymmetric(std::span<const SyncSample> samples,
                                     const SyncParameters& parameters) {
  SyncClassification judgement;
  judgement.rejected.assign(samples.size(), false);
  judgement.allowance.assign(samples.size(), 0);
  const std::vector<double> lower = LowerEnvelope(samples, parameters.envelope);
  const std::vector<double> upper = UpperEnvelope(samples, parameters.envelope);
  std::vector<double> beside(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    beside[i] = std::max(samples[i].offset - lower[i], upper[i] - samples[i].offset);
  }
  const double reach = std::max(parameters.apart_least_ns, QuantileOf(std::move(beside), 0.999));
  for (const SyncSample& sample : samples) {
    judgement.likely.push_back({sample.offset - reach, sample.offset + reach});
  }
  return judgement;
}

}  // namespace

void SyncOrderVote::Add(std::span<const SyncSample> samples, const SyncParameters& parameters) {
  const std::vector<double> lower = LowerEnvelope(samples, parameters.envelope);
  const std::vector<double> upper = UpperEnvelope(samples, parameters.envelope);
  for (size_t i = 0; i < samples.size(); ++i) {
    above_lower_.push_back(samples[i].offset - lower[i]);
    below_upper_.push_back(upper[i] - samples[i].offset);
  }
}

SyncOrder SyncOrderVote::Result() const {
  if (above_lower_.size() < kVotesMin) return SyncOrder::kUnknown;
  const double above = QuantileOf(above_lower_, 0.5);
  const double below = QuantileOf(below_upper_, 0.5);
  if (above < kCrowding * below) return SyncOrder::kHostAfter;
  if (below < kCrowding * above) return SyncOrder::kHostBefore;
  return SyncOrder::kEitherFirst;
}

SyncClassification ClassifySyncPoints(std::span<const SyncSample> samples, SyncOrder order,
                                      const SyncParameters& parameters) {
  if (order == SyncOrder::kHostAfter) {
    return ClassifyLate(samples, parameters.apart_least_ns, parameters.envelope);
  }
  if (order == SyncOrder::kHostBefore) {
    SyncClassification judgement =
        ClassifyLate(Mirror(samples), parameters.apart_least_ns, Mirror(parameters.envelope));
    for (Interval& likely : judgement.likely) likely = {-likely.max, -likely.min};
    return judgement;
  }
  return ClassifySymmetric(samples, parameters);
}

}  // namespace neurontrace
