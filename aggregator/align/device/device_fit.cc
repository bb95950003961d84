// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/device/device_fit.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include "aggregator/align/device/device_parts.h"

namespace neurontrace {
namespace {

// Fits in four steps: PartDevice divides the evidence where the counter restarted, an outline of
// each part is fitted to the brackets alone, sync points far from the outline are removed, and a
// last fit uses brackets and sync points together. Costs a few passes over the evidence of each
// part, and an envelope of the sync points with a fixed number of neighbours. Checked against
// simulated devices whose true times are known (device_fit_test.cc, device_property_test.cc).

// One part while it is fitted.
struct Work {
  explicit Work(DevicePart from) : part(std::move(from)) {}

  DevicePart part;
  // Set by Outline.
  PairOrigin origin;
  ClockSegment outline;  // fitted to the certain constraints alone
  // Of the part's sync points that passed the gate.
  std::vector<SyncSample> samples;
  SyncClassification judgement;
};

// Fits each part: an outline by brackets, a gate for sync points by the outline, then all together.
class DeviceFitter {
 public:
  DeviceFitter(const DeviceEvidence& evidence, const DeviceFitParameters& parameters)
      : evidence_(evidence), parameters_(parameters) {}

  DeviceClockModel Run();

 private:
  // Fits the certain constraints alone and drops those that contradict the others.
  void Outline(Work& work);
  void Gate(Work& work);
  // Judges the samples and adds a constraint for each point that is used.
  void AddSyncPoints(Work& work);
  // Fits everything, adds the segment, its range and its findings to the model.
  void Fit(Work& work);

  const DeviceEvidence& evidence_;
  const DeviceFitParameters& parameters_;
  DeviceFaults faults_;
  SyncOrder order_ = SyncOrder::kUnknown;
  DeviceClockModel model_;
};

// The sort is stable, so that constraints at one time keep the order of the evidence.
void SortByX(std::vector<ClockConstraint>& constraints) {
  std::stable_sort(
      constraints.begin(), constraints.end(),
      [](const ClockConstraint& a, const ClockConstraint& b) { return a.x_ns < b.x_ns; });
}

void DeviceFitter::Outline(Work& work) {
  std::vector<ClockConstraint>& hard = work.part.hard;
  SortByX(hard);
  PairFit fit = FitPair(hard, parameters_.pair);
  std::vector<bool> out(hard.size());
  for (const PairFit::Contradiction& contradiction : fit.contradictions) {
    out[contradiction.constraint] = true;
    faults_.Add(DeviceFault::kContradiction, hard[contradiction.constraint].x_ns,
                contradiction.amount_ns);
  }
  size_t kept = 0;
  for (size_t i = 0; i < hard.size(); ++i) {
    if (!out[i]) hard[kept++] = hard[i];
  }
  hard.resize(kept);
  work.outline.knots = std::move(fit.knots);
  work.origin = PairOrigin::Of(hard.front());
}

// Removes sync points that cannot be right: those farther from the outline than its bound plus what
// is usual for this device. The usual distance is ten times the median deviation.
void DeviceFitter::Gate(Work& work) {
  std::vector<double> beside;
  std::vector<double> reach;
  for (const DeviceSyncPoint& p : work.part.sync_points) {
    const ClockEstimate outline = EvaluateSegment(work.outline, p.device_ns);
    beside.push_back(static_cast<double>(static_cast<int64_t>(p.host_ns - outline.y_ns)));
    reach.push_back(static_cast<double>(outline.bound_ns));
  }
  const double middle = QuantileOf(beside, 0.5);
  std::vector<double> deviation = beside;
  for (double& d : deviation) d = std::abs(d - middle);
  const double gate = parameters_.sync.gate_ns + 10 * QuantileOf(std::move(deviation), 0.5);
  std::vector<DeviceSyncPoint>& points = work.part.sync_points;
  size_t kept = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (std::abs(beside[i]) > reach[i] + gate) {
      faults_.Add(DeviceFault::kOffCurve, points[i].device_ns, beside[i]);
      continue;
    }
    // A point that stays becomes a sample, in the numbers of the part's origin.
    work.samples.push_back({work.origin.Seconds(points[i].device_ns),
                            work.origin.Offset(points[i].device_ns, points[i].host_ns)});
    points[kept++] = points[i];
  }
  points.resize(kept);
}

// Turns the judgement about sync points into constraints.
void DeviceFitter::AddSyncPoints(Work& work) {
  const SyncClassification& judgement = work.judgement =
      ClassifySyncPoints(work.samples, order_, parameters_.sync);
  const auto y = [&work](uint64_t x_ns, double offset, uint64_t unknown) {
    return std::isinf(offset) ? unknown : work.origin.Y(x_ns, offset);
  };
  // Only an order that the caller knows makes what is certain narrower; a learned one is an
  // assumption.
  const bool is_known = parameters_.sync.order != SyncOrder::kUnknown;
  for (size_t i = 0; i < work.samples.size(); ++i) {
    const DeviceSyncPoint& p = work.part.sync_points[i];
    const ClockEstimate outline = EvaluateSegment(work.outline, p.device_ns);
    if (judgement.rejected[i]) {
      faults_.Add(DeviceFault::kAlone, p.device_ns);
      continue;
    }
    ClockConstraint constraint{
        .x_ns = p.device_ns,
        .likely_min_ns = y(p.device_ns, judgement.likely[i].min, ClockConstraint::kNoMin),
        .likely_max_ns = y(p.device_ns, judgement.likely[i].max, ClockConstraint::kNoMax)};
    // Brackets are believed before sync points.
    if (constraint.likely_max_ns < outline.y_ns - outline.bound_ns ||
        (constraint.likely_min_ns > outline.y_ns + outline.bound_ns)) {
      faults_.Add(DeviceFault::kBeyondBracket, p.device_ns);
      continue;
    }
    // A record after the reading limits y from above, unless it contradicts the brackets.
    if (p.recorded_ns.has_value() && *p.recorded_ns > p.host_ns &&
        *p.recorded_ns >= outline.y_ns - outline.bound_ns) {
      constraint.y_max_ns = *p.recorded_ns;
    }
    if (is_known && order_ == SyncOrder::kHostAfter) constraint.y_max_ns = p.host_ns;
    if (is_known && order_ == SyncOrder::kHostBefore) constraint.y_min_ns = p.host_ns;
    work.part.hard.push_back(constraint);
  }
  SortByX(work.part.hard);
}

// Widens the likely bounds of the knots by the allowance of the samples next to them. If there are
// only a few sync points, their own bounds are too narrow.
void Allow(const Work& work, std::vector<ClockKnot>& knots) {
  if (work.samples.empty()) return;
  for (ClockKnot& knot : knots) {
    const double seconds = work.origin.Seconds(knot.x_ns);
    const auto after =
        std::lower_bound(work.samples.begin(), work.samples.end(), seconds,
                         [](const SyncSample& sample, double s) { return sample.seconds < s; });
    const auto i = static_cast<size_t>(after - work.samples.begin());
    double allowance = 0;
    if (i < work.samples.size()) allowance = work.judgement.allowance[i];
    if (i > 0) allowance = std::max(allowance, work.judgement.allowance[i - 1]);
    knot.likely_bound_ns =
        std::min(knot.bound_ns, knot.likely_bound_ns + static_cast<uint64_t>(std::ceil(allowance)));
  }
}

// A line between knots follows the certain constraints only to within its tolerance. Adds a knot
// where it exceeds one.
void HoldTo(std::span<const ClockConstraint> constraints, ClockSegment& segment) {
  std::vector<ClockKnot> added;
  for (const ClockConstraint& constraint : constraints) {
    const ClockEstimate estimate = EvaluateSegment(segment, constraint.x_ns);
    const uint64_t y = std::clamp(estimate.y_ns, constraint.y_min_ns, constraint.y_max_ns);
    if (y == estimate.y_ns) continue;
    const uint64_t moved = y > estimate.y_ns ? y - estimate.y_ns : estimate.y_ns - y;
    if (moved > estimate.bound_ns) continue;  // the constraint contradicted and was rejected
    // The constraints are in ascending order of x: the first of several at one time decides.
    if (!added.empty() && added.back().x_ns == constraint.x_ns) continue;
    added.push_back({constraint.x_ns, y, estimate.bound_ns + moved,
                     std::min(estimate.bound_ns, estimate.likely_bound_ns) + moved});
  }
  std::vector<ClockKnot>& knots = segment.knots;
  std::vector<ClockKnot> merged;
  std::merge(knots.begin(), knots.end(), added.begin(), added.end(), std::back_inserter(merged),
             [](const ClockKnot& a, const ClockKnot& b) { return a.x_ns < b.x_ns; });
  knots.clear();
  for (const ClockKnot& knot : merged) {
    if (knots.empty() || knots.back().x_ns < knot.x_ns) {
      knots.push_back(knot);
    } else {
      knots.back() = knot;  // the added one, which comes second
    }
  }
}

// A later time must never be shown as earlier. Raises a knot below the one before it, and its
// bounds by as much.
void MakeAscend(std::vector<ClockKnot>& knots) {
  for (size_t i = 1; i < knots.size(); ++i) {
    if (knots[i].y_ns >= knots[i - 1].y_ns) continue;
    const uint64_t moved = knots[i - 1].y_ns - knots[i].y_ns;
    knots[i].y_ns += moved;
    knots[i].bound_ns += moved;
    knots[i].likely_bound_ns += moved;
  }
}

void DeviceFitter::Fit(Work& work) {
  AddSyncPoints(work);
  const std::vector<ClockConstraint>& constraints = work.part.hard;
  PairFit fit = FitPair(constraints, parameters_.pair);
  for (const PairFit::Contradiction& contradiction : fit.contradictions) {
    faults_.Add(DeviceFault::kContradiction, constraints[contradiction.constraint].x_ns,
                contradiction.amount_ns);
  }
  ClockModel& clock = model_.clock;
  clock.evidence_used += constraints.size() - fit.contradictions.size();
  // A break is reported between the last evidence before it and the first after it.
  if (!clock.segments.empty()) {
    clock.findings.push_back({.kind = ClockFindingKind::kBreak,
                              .x_begin_ns = model_.ranges.back().x_end_ns,
                              .x_end_ns = work.part.range.x_begin_ns,
                              .amount_ns = 0,
                              .words = work.part.cause == SegmentCause::kCounterReset
                                           ? "the counter restarted"
                                           : "the counter or its host's clock stepped"});
  }
  // Allow comes first, because the knots that HoldTo adds inherit the bounds.
  Allow(work, fit.knots);
  ClockSegment segment{work.part.cause, std::move(fit.knots)};
  HoldTo(constraints, segment);
  MakeAscend(segment.knots);
  clock.segments.push_back(std::move(segment));
  model_.ranges.push_back(work.part.range);
}

// All parts are outlined before any is fitted: the order of readings that they vote for is used by
// every fit.
DeviceClockModel DeviceFitter::Run() {
  model_.clock.algorithm_version = kDeviceAlgorithmVersion;
  std::vector<Work> all;
  for (DevicePart& part :
       PartDevice(evidence_, {parameters_.pair.pair, parameters_.apart_most_ns}, faults_)) {
    all.emplace_back(std::move(part));
  }
  // The order of readings is a property of the runtime, so all parts vote together.
  SyncOrderVote vote;
  for (Work& work : all) {
    Outline(work);
    Gate(work);
    if (parameters_.sync.order == SyncOrder::kUnknown) vote.Add(work.samples, parameters_.sync);
  }
  order_ = parameters_.sync.order == SyncOrder::kUnknown ? vote.Result() : parameters_.sync.order;
  for (Work& work : all) Fit(work);
  model_.sync_order = order_;
  faults_.WriteTo(model_.clock);
  return std::move(model_);
}

}  // namespace

PairFitParameters DeviceFitParameters::DefaultPair() {
  PairFitParameters pair;
  // Two oscillators, the device's possibly a poor one, and a REALTIME that may be slewed meanwhile.
  pair.pair.rate = {-600'000, 600'000};
  pair.line_tolerance_ns = 10;
  pair.reach_s = 64;
  return pair;
}

DeviceClockModel FitDeviceClock(const DeviceEvidence& evidence,
                                const DeviceFitParameters& parameters) {
  return DeviceFitter(evidence, parameters).Run();
}

}  // namespace neurontrace
