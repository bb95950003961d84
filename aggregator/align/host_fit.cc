// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/host_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <tuple>
#include <vector>

#include "aggregator/align/core/clock_reading.h"
#include "aggregator/align/host/host_cut.h"
#include "aggregator/align/host/host_exchange.h"
#include "aggregator/align/utc/host_utc.h"

namespace neurontrace {
namespace {

// Result of one search for unreported steps.
struct HostSearch {
  std::vector<HostCut> steps;           // not reported by the host
  std::vector<HostExchange> exchanges;  // a copy with those that are rejected
  std::vector<ProbeRoute> routes;       // a copy with the shifts that were learned
  double wander_scale = 1;              // factor on the wander limits that was used
};

// Searches every stretch once, on copies of the exchanges and routes, with both limits of the
// wander multiplied by `wander_scale`.
HostSearch SearchOnce(std::span<const std::span<const HostSide>> stretches,
                      const std::vector<HostExchange>& exchanges,
                      const std::vector<ProbeRoute>& routes, StepSearchParameters parameters,
                      double wander_scale) {
  parameters.pair.wander.wander_ns_per_s2 *= wander_scale;
  parameters.pair.wander.rate_change_ns_per_s *= wander_scale;
  HostSearch search{{}, exchanges, routes, wander_scale};
  for (const std::span<const HostSide> stretch : stretches) {
    for (const ClockStep& step : FindSteps(stretch, parameters, search.exchanges, search.routes)) {
      const HostSide& first = stretch[step.first_after];
      // A step longer than a whole round trip cannot be explained by delays.
      const bool is_plain = std::abs(step.amount_ns) > exchanges[first.exchange].round_trip_ns;
      search.steps.push_back(
          {stretch[step.last_before].x_ns, first.x_ns,
           is_plain ? SegmentCause::kContradiction : SegmentCause::kDetected,
           std::llround(step.amount_ns),
           fmt::format("the probes show a step of {:+.1f} us that no host reported",
                       step.amount_ns / 1e3)});
    }
  }
  return search;
}

// How badly the clock fits the limits: steps and rejected exchanges.
size_t CountViolations(const HostSearch& search) {
  const auto rejected = std::count_if(search.exchanges.begin(), search.exchanges.end(),
                                      [](const HostExchange& e) { return e.is_rejected; });
  return search.steps.size() + static_cast<size_t>(rejected);
}

// Searches every stretch for steps. A clock that seems to step or to contradict itself more than
// once an hour probably wanders more than it should. It is then granted a higher limit: the lowest,
// up to twenty times the regular one, that removes most of the contradictions.
HostSearch SearchHost(std::span<const std::span<const HostSide>> stretches,
                      const std::vector<HostExchange>& exchanges,
                      const std::vector<ProbeRoute>& routes,
                      const StepSearchParameters& parameters) {
  HostSearch search = SearchOnce(stretches, exchanges, routes, parameters, 1);
  constexpr uint64_t kHourNs = 3'600'000'000'000;
  const uint64_t hours =
      exchanges.empty() ? 0 : (exchanges.back().receive_ns - exchanges.front().send_ns) / kHourNs;
  const size_t tolerable = 1 + hours;
  if (CountViolations(search) <= tolerable) return search;
  constexpr double kScales[] = {2, 4, 8, 20};
  HostSearch loosest = SearchOnce(stretches, exchanges, routes, parameters, *std::rbegin(kScales));
  // Steps that remain under the loosest limits are real.
  const size_t least = CountViolations(loosest) + tolerable;
  if (CountViolations(search) <= least) return search;
  for (const double scale : kScales) {
    search = SearchOnce(stretches, exchanges, routes, parameters, scale);
    if (CountViolations(search) <= least) return search;
  }
  return loosest;
}

// Findings of one model; further ones are counted in the last. Limits the size of a stored model.
constexpr size_t kFindingsMax = 256;

std::string Microseconds(double ns) { return fmt::format("{:+.1f} us", ns / 1e3); }

// Holds the state of one FitHostClock: exchanges, then routes, then cuts, then a fit per stretch.
class HostFitter {
 public:
  HostFitter(const ClockEvidence& evidence, const HostFitParameters& parameters,
             const ReferenceUtc& reference_utc)
      : evidence_(evidence),
        parameters_(parameters),
        reference_utc_(reference_utc),
        wander_(parameters.pair.pair.wander) {}

  ClockModel Run();

 private:
  void ReadExchanges();
  void FindCuts();
  void FitIntervals();
  void FitInterval(size_t number, std::span<const HostSide> sides);
  bool ApplyUtc(const PairFitParameters& pair, std::span<const HostSide> sides,
                const ClockSegment& by_probes, std::vector<ClockConstraint>& constraints);
  void ReportContradictions(const PairFit& fit, std::span<const ClockConstraint> constraints);
  void FillUnknown();
  // Adds a finding in ns of the raw clock; the amount is signed and gets rounded.
  void ReportFinding(ClockFindingKind kind, uint64_t begin_ns, uint64_t end_ns, double amount_ns,
                     std::string words);
  void ReportRoutes();
  void ReportRejected();

  const ClockEvidence& evidence_;
  const HostFitParameters& parameters_;
  const ReferenceUtc& reference_utc_;
  // The limits in use: FindCuts may raise them.
  WanderLimits wander_;
  std::vector<HostExchange> exchanges_;
  std::vector<HostSide> sides_;
  ProbeRoutes routes_;
  std::vector<HostCut> cuts_;
  std::vector<std::span<const HostSide>> stretches_;
  ClockModel model_;
};

// Reads and sorts all exchanges and makes two sides of each. Those that cannot be are only counted.
void HostFitter::ReadExchanges() {
  for (const ClockExchange& raw : evidence_.exchanges) {
    HostExchange exchange;
    if (ReadExchange(raw, exchange)) {
      exchanges_.push_back(exchange);
    } else {
      ++model_.evidence_rejected;
    }
  }
  // By every distinguishing field, so that the result does not depend on the order of arrival.
  std::sort(exchanges_.begin(), exchanges_.end(), [](const HostExchange& a, const HostExchange& b) {
    return std::tie(a.receive_ns, a.send_ns, a.y_min_ns, a.y_max_ns, a.epoch, a.path) <
           std::tie(b.receive_ns, b.send_ns, b.y_min_ns, b.y_max_ns, b.epoch, b.path);
  });
  for (size_t i = 0; i < exchanges_.size(); ++i) {
    const auto number = static_cast<uint32_t>(i);
    sides_.push_back({exchanges_[i].send_ns, number, true});
    sides_.push_back({exchanges_[i].receive_ns, number, false});
  }
  std::sort(sides_.begin(), sides_.end(), [](const HostSide& a, const HostSide& b) {
    return std::tie(a.x_ns, a.exchange, a.is_most) < std::tie(b.x_ns, b.exchange, b.is_most);
  });
}

// Cuts come from the host's reports, from the reference's epochs and from the search for steps.
void HostFitter::FindCuts() {
  cuts_ = ReportedCuts(evidence_.events, sides_, exchanges_);
  HostSearch search =
      SearchHost(SplitAtSteps(sides_, cuts_), exchanges_, routes_.routes, parameters_.step);
  exchanges_ = std::move(search.exchanges);
  routes_.routes = std::move(search.routes);
  // The fit and the bounds use the limits under which the search succeeded, and the model states
  // them.
  wander_.wander_ns_per_s2 *= search.wander_scale;
  wander_.rate_change_ns_per_s *= search.wander_scale;
  model_.wander_ns_per_s2 = static_cast<uint32_t>(std::ceil(wander_.wander_ns_per_s2));
  cuts_.insert(cuts_.end(), std::make_move_iterator(search.steps.begin()),
               std::make_move_iterator(search.steps.end()));
  cuts_ = MergeCuts(std::move(cuts_));
  stretches_ = SplitAtSteps(sides_, cuts_);
}

// Fits one stretch, at first by probes alone. UTC needs that fit for its own judgement, and the
// second fit adds what UTC contributes.
void HostFitter::FitInterval(size_t number, std::span<const HostSide> sides) {
  PairFitParameters pair = parameters_.pair;
  pair.pair.wander = wander_;
  // The knots may extend up to the neighbouring cuts and not beyond them.
  pair.x_begin_ns = number == 0 ? 0 : cuts_[number - 1].x_end_ns;
  pair.x_end_ns = number == cuts_.size() ? UINT64_MAX : cuts_[number].x_begin_ns;
  std::vector<ClockConstraint> constraints;
  constraints.reserve(sides.size());
  for (const HostSide& side : sides) {
    if (exchanges_[side.exchange].is_rejected) continue;
    constraints.push_back(ConstraintOf(side, exchanges_, routes_.routes));
  }
  // Without constraints it has no knots; FillUnknown adds some.
  PairFit fit = FitPair(constraints, pair);
  const SegmentCause cause = number == 0 ? SegmentCause::kBegin : cuts_[number - 1].cause;
  ClockSegment segment{cause, std::move(fit.knots)};
  if (ApplyUtc(pair, sides, segment, constraints)) {
    fit = FitPair(constraints, pair);
    segment.knots = std::move(fit.knots);
  }
  ReportContradictions(fit, constraints);
  if (!fit.torn_ns.empty()) {
    ReportFinding(ClockFindingKind::kInconsistent, fit.torn_ns.front(), fit.torn_ns.back(), 0,
                  "the probes before and after disagree; the bounds include both");
  }
  model_.segments.push_back(std::move(segment));
}

// Adds the constraints of UTC to those of a stretch. Returns false if the probes implied all of
// them.
bool HostFitter::ApplyUtc(const PairFitParameters& pair, std::span<const HostSide> sides,
                          const ClockSegment& by_probes,
                          std::vector<ClockConstraint>& constraints) {
  if (sides.empty() || evidence_.utc.empty()) return false;
  // UTC is relative to the reference's epoch, and a stretch is within one epoch.
  const ReferenceUtc::Epoch* epoch = reference_utc_.Find(exchanges_[sides.front().exchange].epoch);
  if (epoch == nullptr) return false;
  HostUtcEvaluation utc =
      EvaluateUtc(HostReadingsOf(evidence_.utc, *epoch, pair.x_begin_ns, pair.x_end_ns), by_probes,
                  epoch->sources);
  std::move(utc.findings.begin(), utc.findings.end(), std::back_inserter(model_.findings));
  model_.evidence_rejected += utc.rejected;
  if (utc.is_tighter) {
    constraints = WithUtc(std::move(constraints), utc);
  } else {
    // Readings that agree are evidence, even if they add nothing.
    model_.evidence_used += utc.constraints.size();
  }
  return utc.is_tighter;
}

// Reports the constraints that contradicted what is possible. A contradicted likely side is only an
// assumption that failed, except for UTC, which enters the fit by its likely sides alone.
void HostFitter::ReportContradictions(const PairFit& fit,
                                      std::span<const ClockConstraint> constraints) {
  size_t impossible = 0;
  for (const PairFit::Contradiction& contradiction : fit.contradictions) {
    const ClockConstraint& constraint = constraints[contradiction.constraint];
    const bool is_utc = constraint.source == HostUtcEvaluation::kSource;
    if (contradiction.likely && !is_utc) continue;
    ++impossible;
    ReportFinding(ClockFindingKind::kRejectedEvidence, constraint.x_ns, constraint.x_ns,
                  contradiction.amount_ns,
                  fmt::format("{} contradicts {} by {}", is_utc ? "a UTC reading" : "a probe",
                              is_utc ? "the likely range of the probes around it" : "the others",
                              Microseconds(contradiction.amount_ns)));
  }
  model_.evidence_used += constraints.size() - impossible;
  model_.evidence_rejected += impossible;
}

// Of a stretch without evidence only this is known: time passed from the end of the segment before
// to the begin of the one after. The truth is between what the two allow.
void HostFitter::FillUnknown() {
  for (size_t s = 0; s < model_.segments.size(); ++s) {
    ClockSegment& segment = model_.segments[s];
    if (!segment.knots.empty()) continue;
    const bool is_last = s == cuts_.size();
    const uint64_t first_ns = is_last ? sides_.front().x_ns : cuts_[s].x_begin_ns;
    const uint64_t begin_ns = s == 0 ? first_ns : cuts_[s - 1].x_end_ns;
    const uint64_t end_ns = is_last ? begin_ns : cuts_[s].x_begin_ns;
    const bool has_before = s > 0;
    const bool has_after = s + 1 < model_.segments.size() && !model_.segments[s + 1].knots.empty();
    uint64_t bound_ns = kNoBound;
    uint64_t y_ns = 0;
    // The clock before continues, without a bound unless a later segment limits it from the other
    // side.
    if (has_before) {
      const ClockKnot& last = model_.segments[s - 1].knots.back();
      y_ns = last.y_ns + (begin_ns - last.x_ns);
      if (has_after && last.bound_ns != kNoBound) {
        const ClockKnot& next = model_.segments[s + 1].knots.front();
        const uint64_t low_ns = last.y_ns - std::min(last.y_ns, last.bound_ns);
        const uint64_t high_ns = std::max(next.y_ns + next.bound_ns, low_ns);
        y_ns = low_ns + (high_ns - low_ns) / 2;
        bound_ns = (high_ns - low_ns) / 2 + 1 + (end_ns - begin_ns);
      }
    } else if (has_after) {
      // Nothing is before: the segment after continues backwards, without a bound.
      const ClockKnot& next = model_.segments[s + 1].knots.front();
      y_ns = next.y_ns - std::min(next.y_ns, next.x_ns - begin_ns);
    }
    segment.knots.push_back({begin_ns, y_ns, bound_ns, bound_ns});
    if (end_ns > begin_ns) {
      segment.knots.push_back({end_ns, y_ns + (end_ns - begin_ns), bound_ns, bound_ns});
    }
  }
}

// FillUnknown follows the loop because it needs the segments on both sides.
void HostFitter::FitIntervals() {
  for (size_t s = 0; s < stretches_.size(); ++s) FitInterval(s, stretches_[s]);
  FillUnknown();
  for (const HostCut& cut : cuts_) {
    ReportFinding(ClockFindingKind::kBreak, cut.x_begin_ns, cut.x_end_ns,
                  static_cast<double>(cut.amount_ns), cut.words);
  }
}

void HostFitter::ReportFinding(ClockFindingKind kind, uint64_t begin_ns, uint64_t end_ns,
                               double amount_ns, std::string words) {
  model_.findings.push_back({kind, begin_ns, end_ns, std::llround(amount_ns), std::move(words)});
}

void HostFitter::ReportRoutes() {
  for (const RouteChange& change : routes_.changes) {
    const ProbeRoute& route = routes_.routes[change.route];
    ReportFinding(
        ClockFindingKind::kRouteChange, change.x_begin_ns, change.x_end_ns,
        change.round_trip_change_ns,
        fmt::format("the shortest round trip changed by {} to {:.1f} us",
                    Microseconds(change.round_trip_change_ns), route.round_trip_ns / 1e3));
  }
}

// The last step: reports rejected probes, sorts all findings and cuts them to their limit.
void HostFitter::ReportRejected() {
  for (const HostExchange& exchange : exchanges_) {
    if (!exchange.is_rejected) continue;
    ++model_.evidence_rejected;
    ReportFinding(ClockFindingKind::kRejectedEvidence, exchange.send_ns, exchange.receive_ns, 0,
                  "a probe contradicts those around it");
  }
  std::stable_sort(model_.findings.begin(), model_.findings.end(),
                   [](const ClockFinding& a, const ClockFinding& b) {
                     return std::tie(a.x_begin_ns, a.x_end_ns) < std::tie(b.x_begin_ns, b.x_end_ns);
                   });
  if (model_.findings.size() <= kFindingsMax) return;
  const size_t more = model_.findings.size() - (kFindingsMax - 1);
  const uint64_t end_ns = model_.findings.back().x_end_ns;
  model_.findings.resize(kFindingsMax - 1);
  ReportFinding(ClockFindingKind::kInconsistent, model_.findings.back().x_begin_ns, end_ns, 0,
                fmt::format("{} more findings", more));
}

// The order is that of the dependencies: routes need exchanges, the search for steps needs routes,
// and the fit needs the cuts.
ClockModel HostFitter::Run() {
  model_.algorithm_version = kHostAlgorithmVersion;
  ReadExchanges();
  if (exchanges_.empty()) return std::move(model_);
  routes_ = FindRoutes(exchanges_, parameters_.route);
  FindCuts();
  FitIntervals();
  ReportRoutes();
  ReportRejected();
  return std::move(model_);
}

}  // namespace

ClockModel FitHostClock(const ClockEvidence& evidence, const HostFitParameters& parameters,
                        const ReferenceUtc& reference_utc) {
  return HostFitter(evidence, parameters, reference_utc).Run();
}

}  // namespace neurontrace
