// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/host_fit.h"

#include <algorithm>

namespace neurontrace {
namespace {

constexpr uint32_t kAlgorithmVersion = 1;

bool IsSane(const ClockExchange& e) {
  constexpr uint64_t kTimeMax = uint64_t{1} << 62;
  return e.send_raw_ns <= e.receive_raw_ns && e.reference_receive_ns <= e.reference_send_ns &&
         e.receive_raw_ns < kTimeMax && e.reference_send_ns < kTimeMax &&
         // 1 ns and 200 ppm: the two clocks count differently.
         (e.receive_raw_ns - e.send_raw_ns) + 1 + (e.receive_raw_ns - e.send_raw_ns) / 5'000 >=
             e.reference_send_ns - e.reference_receive_ns;
}

double RoundTripOf(const ClockExchange& e) {
  return static_cast<double>(static_cast<int64_t>((e.receive_raw_ns - e.send_raw_ns) -
                                                  (e.reference_send_ns - e.reference_receive_ns)));
}

}  // namespace

ClockModel FitHostClock(const ClockEvidence& evidence, const HostFitParameters& parameters) {
  ClockModel model;
  model.algorithm_version = kAlgorithmVersion;
  std::vector<ClockConstraint> constraints;
  double least = 1e18;
  for (const ClockExchange& e : evidence.exchanges) {
    if (IsSane(e)) least = std::min(least, RoundTripOf(e));
  }
  const auto floor_ns =
      static_cast<uint64_t>(std::max(0.0, least / 2 - parameters.floor_margin_ns));
  for (const ClockExchange& e : evidence.exchanges) {
    if (!IsSane(e)) {
      ++model.evidence_rejected;
      continue;
    }
    constraints.push_back({.x_ns = e.send_raw_ns,
                           .y_max_ns = e.reference_receive_ns,
                           .likely_max_ns = e.reference_receive_ns - floor_ns});
    constraints.push_back({.x_ns = e.receive_raw_ns,
                           .y_min_ns = e.reference_send_ns,
                           .likely_min_ns = e.reference_send_ns + floor_ns});
  }
  std::stable_sort(
      constraints.begin(), constraints.end(),
      [](const ClockConstraint& a, const ClockConstraint& b) { return a.x_ns < b.x_ns; });
  if (constraints.empty()) return model;
  PairFit fit = FitPair(constraints, parameters.pair);
  model.evidence_used = constraints.size() - fit.contradictions.size();
  model.evidence_rejected += fit.contradictions.size();
  model.segments.push_back({SegmentCause::kBegin, std::move(fit.knots)});
  return model;
}

}  // namespace neurontrace
