// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/utc/reference_utc.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "aggregator/align/core/clock_reading.h"
#include "aggregator/align/core/pair_fit.h"
#include "aggregator/align/host/host_cut.h"
#include "aggregator/align/utc/utc_trust.h"

namespace neurontrace {
namespace {

// Readings of UTC on the keeper's host become ties between UTC and the reference time, because the
// keeper's exchanges state the difference of its raw clock to the reference. Ties are divided by
// epochs of the reference and by events of the host, and each stretch is fitted by the smooth-clock
// fit that probes use (core/pair_fit.h). Sources join by descending trust, each filtered by the
// strip of those before it. Checked with sources that lie (host_utc_test.cc).

// A reading of UTC on the reference timescale.
struct Tie {
  uint64_t x_ns = 0;
  uint64_t utc_min_ns = 0;
  uint64_t utc_max_ns = 0;
  UtcSource source = UtcSource::kUnspecified;

  double half_ns() const { return static_cast<double>(utc_max_ns - utc_min_ns) / 2; }
  double Seconds(uint64_t origin_ns) const {
    return static_cast<double>(static_cast<int64_t>(x_ns - origin_ns)) * 1e-9;
  }
};

// Returns the upper median of the values; 0 without values.
double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// By every distinguishing field, so that the result does not depend on the order of arrival.
bool IsBefore(const Tie& a, const Tie& b) {
  return std::tie(a.x_ns, a.source, a.utc_min_ns, a.utc_max_ns) <
         std::tie(b.x_ns, b.source, b.utc_min_ns, b.utc_max_ns);
}

// Fits the ties of one epoch between two events of the keeper's clocks. Findings and segments are
// added to `model`, whose x is the reference time.
class StripFitter {
 public:
  StripFitter(std::vector<Tie> ties, uint64_t x_begin_ns, uint64_t x_end_ns, ClockModel& model)
      : ties_(std::move(ties)), x_begin_ns_(x_begin_ns), x_end_ns_(x_end_ns), model_(model) {}

  // Returns the sources that the strip rests on; none if they agree on nothing.
  std::vector<UtcSource> Run(SegmentCause cause);

 private:
  // Returns the ties of one source, in their order.
  std::vector<Tie> Of(UtcSource source) const;
  // Fits ties as certain constraints: every reading is a promise about UTC itself.
  PairFit Fit(const std::vector<Tie>& ties) const;
  // Counts and reports `count` rejected ties of a source; the amount is the worst one, in ns.
  void Reject(UtcSource source, uint64_t x_begin_ns, uint64_t x_end_ns, double amount_ns,
              size_t count);
  std::vector<Tie> InLine(std::vector<Tie> ties);
  std::vector<Tie> Agreeing(const std::vector<Tie>& ties, const ClockSegment& strip);

  std::vector<Tie> ties_;
  uint64_t x_begin_ns_;
  uint64_t x_end_ns_;
  ClockModel& model_;
};

std::vector<Tie> StripFitter::Of(UtcSource source) const {
  std::vector<Tie> ties;
  for (const Tie& tie : ties_) {
    if (tie.source == source) ties.push_back(tie);
  }
  return ties;
}

PairFit StripFitter::Fit(const std::vector<Tie>& ties) const {
  PairFitParameters parameters;
  parameters.x_begin_ns = x_begin_ns_;
  parameters.x_end_ns = x_end_ns_;
  std::vector<ClockConstraint> constraints;
  for (const Tie& tie : ties) {
    constraints.push_back(
        {.x_ns = tie.x_ns, .y_min_ns = tie.utc_min_ns, .y_max_ns = tie.utc_max_ns});
  }
  return FitPair(constraints, parameters);
}

void StripFitter::Reject(UtcSource source, uint64_t x_begin_ns, uint64_t x_end_ns, double amount_ns,
                         size_t count) {
  model_.evidence_rejected += count;
  model_.findings.push_back(
      {ClockFindingKind::kRejectedEvidence, x_begin_ns, x_end_ns, std::llround(amount_ns),
       fmt::format("{} of the reference's own UTC readings from {} are ignored because they "
                   "contradict the others by up to {:+.1f} us",
                   count, NameOf(source), amount_ns / 1e3)});
}

// Keeps the ties near the line that most are near. A fit from first to last would otherwise believe
// whatever comes first. Uses the median slope over half of the ties and the median residual, which
// a minority of wrong ties cannot move.
std::vector<Tie> StripFitter::InLine(std::vector<Tie> ties) {
  // Fewer ties have no majority.
  constexpr size_t kFewest = 4;
  // What a calm source may deviate from a straight line in addition to six median deviations.
  constexpr double kNearNs = 5'000;
  constexpr double kDeviations = 6;
  const size_t half = ties.size() / 2;
  if (ties.size() < kFewest) return ties;
  const Tie& origin = ties.front();
  const auto offset = [&](const Tie& tie) {
    const uint64_t shift = origin.utc_min_ns - origin.x_ns;
    return static_cast<double>(static_cast<int64_t>(tie.utc_min_ns - tie.x_ns - shift)) +
           tie.half_ns();
  };
  // Slopes over half of all ties span enough time to be hardly affected by their noise.
  std::vector<double> slopes;
  for (size_t i = 0; i + half < ties.size(); ++i) {
    const double elapsed = ties[i + half].Seconds(ties[i].x_ns);
    if (elapsed > 0) slopes.push_back((offset(ties[i + half]) - offset(ties[i])) / elapsed);
  }
  const double slope = Median(std::move(slopes));
  std::vector<double> residuals;
  for (const Tie& tie : ties) residuals.push_back(offset(tie) - slope * tie.Seconds(origin.x_ns));
  const double middle = Median(residuals);
  std::vector<double> deviations;
  for (double& residual : residuals) {
    residual -= middle;
    deviations.push_back(std::abs(residual));
  }
  const double near_ns = kNearNs + kDeviations * Median(std::move(deviations));
  std::vector<Tie> kept;
  double worst = 0;
  for (size_t i = 0; i < ties.size(); ++i) {
    if (std::abs(residuals[i]) <= ties[i].half_ns() + near_ns) {
      kept.push_back(ties[i]);
    } else if (std::abs(residuals[i]) > std::abs(worst)) {
      worst = residuals[i];
    }
  }
  const size_t out = ties.size() - kept.size();
  if (out > 0) Reject(origin.source, origin.x_ns, ties.back().x_ns, worst, out);
  return kept;
}

// Keeps the ties that the strip of more trusted sources allows. The amount of the finding is how
// far the worst reading is outside of the strip.
std::vector<Tie> StripFitter::Agreeing(const std::vector<Tie>& ties, const ClockSegment& strip) {
  if (strip.knots.empty()) return ties;
  std::vector<Tie> kept;
  double worst = 0;
  for (const Tie& tie : ties) {
    const ClockEstimate utc = EvaluateSegment(strip, tie.x_ns);
    const double low = static_cast<double>(static_cast<int64_t>(tie.utc_min_ns - utc.y_ns));
    const double high = static_cast<double>(static_cast<int64_t>(tie.utc_max_ns - utc.y_ns));
    const auto bound = static_cast<double>(utc.bound_ns);
    const double beyond = low > bound ? low - bound : std::min(0.0, high + bound);
    if (beyond == 0) {
      kept.push_back(tie);
    } else if (std::abs(beyond) > std::abs(worst)) {
      worst = beyond;
    }
  }
  const size_t out = ties.size() - kept.size();
  if (out > 0) Reject(ties.front().source, ties.front().x_ns, ties.back().x_ns, worst, out);
  return kept;
}

// Adds one source after another and fits all of them together again each time.
std::vector<UtcSource> StripFitter::Run(SegmentCause cause) {
  std::vector<Tie> used;
  std::vector<UtcSource> sources;
  PairFit fit;
  for (const UtcSource source : kUtcSourcesByTrust) {
    const std::vector<Tie> ties = Agreeing(InLine(Of(source)), {cause, fit.knots});
    if (ties.empty()) continue;
    // Works on a copy, because a source that fits badly leaves no trace.
    std::vector<Tie> all = used;
    all.insert(all.end(), ties.begin(), ties.end());
    std::sort(all.begin(), all.end(), IsBefore);
    PairFit more = Fit(all);
    // If less than half of a source fits, nothing shows which ties are wrong, so none is used.
    if (more.contradictions.size() * 2 > ties.size()) {
      Reject(source, ties.front().x_ns, ties.back().x_ns, more.contradictions.front().amount_ns,
             ties.size());
      continue;
    }
    used = std::move(all);
    fit = std::move(more);
    sources.push_back(source);
  }
  model_.evidence_used += used.size() - fit.contradictions.size();
  model_.evidence_rejected += fit.contradictions.size();
  if (!fit.knots.empty()) model_.segments.push_back({cause, std::move(fit.knots)});
  return sources;
}

// Converts the keeper's raw to the reference in one boot of its host. Within an epoch the two
// differ by a constant, as the keeper's raw clock is what makes the reference.
class ReferenceRaw {
 public:
  explicit ReferenceRaw(std::span<const ClockExchange> exchanges) {
    // Only the keeper's exchanges with itself take no time; others are not for this.
    for (const ClockExchange& exchange : exchanges) {
      if (exchange.send_raw_ns != exchange.receive_raw_ns ||
          exchange.reference_receive_ns != exchange.reference_send_ns) {
        continue;
      }
      points_.push_back({exchange.send_raw_ns, exchange.reference_send_ns - exchange.send_raw_ns,
                         exchange.reference_epoch});
    }
    std::sort(points_.begin(), points_.end(), [](const Point& a, const Point& b) {
      return std::tie(a.raw_ns, a.epoch, a.offset_ns) < std::tie(b.raw_ns, b.epoch, b.offset_ns);
    });
  }

  // From raw_ns on, the reference is raw plus offset_ns; the sum wraps.
  struct Point {
    uint64_t raw_ns = 0;
    uint64_t offset_ns = 0;
    uint32_t epoch = 0;
  };
  // Returns nullptr between two epochs, or if nothing is known.
  const Point* At(uint64_t raw_ns) const {
    const auto after =
        std::lower_bound(points_.begin(), points_.end(), raw_ns,
                         [](const Point& p, uint64_t raw) { return p.raw_ns < raw; });
    if (after == points_.end()) return points_.empty() ? nullptr : &points_.back();
    if (after == points_.begin()) return &*after;
    const Point& before = *(after - 1);
    const bool is_one = before.epoch == after->epoch && before.offset_ns == after->offset_ns;
    return is_one ? &*after : nullptr;
  }

 private:
  std::vector<Point> points_;
};

// The ties of an epoch, and the events that its host reported.
struct EpochAnchors {
  std::vector<Tie> ties;
  std::vector<HostCut> cuts;  // in reference time
};

// Adds the ties and cuts of one boot of the keeper's host to their epochs. Readings whose epoch is
// unknown are dropped.
void Collect(const ClockEvidence& own, std::map<uint32_t, EpochAnchors>& epochs) {
  const ReferenceRaw raw(own.exchanges);
  for (const UtcReading& reading : own.utc) {
    const ReferenceRaw::Point* point = IsSound(reading) ? raw.At(reading.raw_ns) : nullptr;
    if (point == nullptr) continue;
    epochs[point->epoch].ties.push_back({reading.raw_ns + point->offset_ns, reading.utc_earliest_ns,
                                         reading.utc_latest_ns, reading.source});
  }
  // Without sides only events that the host reported make cuts.
  for (HostCut cut : ReportedCuts(own.events, {}, {})) {
    const ReferenceRaw::Point* point = raw.At(cut.x_begin_ns);
    if (point == nullptr) continue;
    cut.x_begin_ns += point->offset_ns;
    cut.x_end_ns += point->offset_ns;
    epochs[point->epoch].cuts.push_back(std::move(cut));
  }
}

// Fits one epoch stretch by stretch. Ties within a cut are dropped; a stretch without ties has no
// segment.
ReferenceUtc::Epoch FitEpoch(uint32_t number, EpochAnchors all) {
  ReferenceUtc::Epoch epoch{.epoch = number, .utc = {}, .sources = {}};
  std::sort(all.ties.begin(), all.ties.end(), IsBefore);
  const std::vector<HostCut> cuts = MergeCuts(std::move(all.cuts));
  auto next = all.ties.begin();
  for (size_t s = 0; s <= cuts.size(); ++s) {
    const uint64_t x_begin_ns = s == 0 ? 0 : cuts[s - 1].x_end_ns;
    const uint64_t x_end_ns = s == cuts.size() ? UINT64_MAX : cuts[s].x_begin_ns;
    while (next != all.ties.end() && next->x_ns < x_begin_ns) ++next;
    std::vector<Tie> ties;
    // Ties are sorted, so each is visited once over all stretches.
    for (; next != all.ties.end() && next->x_ns <= x_end_ns; ++next) ties.push_back(*next);
    if (ties.empty()) continue;
    const SegmentCause cause = s == 0 ? SegmentCause::kBegin : cuts[s - 1].cause;
    for (const UtcSource source :
         StripFitter(std::move(ties), x_begin_ns, x_end_ns, epoch.utc).Run(cause)) {
      const bool is_new =
          std::find(epoch.sources.begin(), epoch.sources.end(), source) == epoch.sources.end();
      if (is_new) epoch.sources.push_back(source);
    }
  }
  return epoch;
}

// Returns the reference time of a UTC time by iteration. The offset changes by less than a
// thousandth of the distance, so each step is a thousand times closer. Requires a model with a
// segment.
uint64_t TimeAt(const ClockModel& utc, uint64_t utc_ns) {
  const ClockKnot& knot = utc.segments.front().knots.front();
  uint64_t x_ns = utc_ns - (knot.y_ns - knot.x_ns);
  for (int step = 0; step < 5; ++step) x_ns += utc_ns - EvaluateClock(utc, x_ns).estimate.y_ns;
  return x_ns;
}

}  // namespace

const ReferenceUtc::Epoch* ReferenceUtc::Find(uint32_t epoch) const {
  const auto found =
      std::lower_bound(epochs.begin(), epochs.end(), epoch,
                       [](const Epoch& a, uint32_t number) { return a.epoch < number; });
  return found != epochs.end() && found->epoch == epoch ? &*found : nullptr;
}

// Epochs without a segment or a finding are not included.
ReferenceUtc ReferenceUtcOf(std::span<const ClockEvidence> own) {
  std::map<uint32_t, EpochAnchors> epochs;
  for (const ClockEvidence& boot : own) Collect(boot, epochs);
  ReferenceUtc reference;
  for (auto& [number, ties] : epochs) {
    ReferenceUtc::Epoch epoch = FitEpoch(number, std::move(ties));
    if (!epoch.utc.segments.empty() || !epoch.utc.findings.empty()) {
      reference.epochs.push_back(std::move(epoch));
    }
  }
  return reference;
}

std::optional<ReferenceTimes> ReferenceTimesOf(const ReferenceUtc::Epoch& epoch,
                                               const UtcReading& reading) {
  // Beyond an hour from all readings, or with a bound beyond ten seconds, UTC tells nothing.
  constexpr uint64_t kFarNs = 3'600'000'000'000;
  constexpr uint64_t kReachMaxNs = 10'000'000'000;
  if (epoch.utc.segments.empty()) return std::nullopt;
  const uint64_t first_ns = epoch.utc.segments.front().knots.front().y_ns;
  const uint64_t last_ns = epoch.utc.segments.back().knots.back().y_ns;
  if (reading.utc_earliest_ns + kFarNs < first_ns || reading.utc_latest_ns > last_ns + kFarNs) {
    return std::nullopt;
  }
  // A thousandth more, because the offset may change by that share of the distance.
  const auto reach = [&](uint64_t x_ns) {
    const uint64_t bound_ns = EvaluateClock(epoch.utc, x_ns).estimate.bound_ns;
    return bound_ns > kReachMaxNs ? kReachMaxNs : bound_ns + bound_ns / 1'000 + 2;
  };
  const uint64_t begin_ns = TimeAt(epoch.utc, reading.utc_earliest_ns);
  const uint64_t end_ns = TimeAt(epoch.utc, reading.utc_latest_ns);
  // The strip is a little wider or narrower at the ends of the interval than in its middle.
  const uint64_t before_ns = std::max(reach(begin_ns), reach(begin_ns - reach(begin_ns)));
  const uint64_t after_ns = std::max(reach(end_ns), reach(end_ns + reach(end_ns)));
  if (std::max(before_ns, after_ns) >= kReachMaxNs) return std::nullopt;
  return ReferenceTimes{begin_ns - before_ns, end_ns + after_ns};
}

}  // namespace neurontrace
