// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/utc/host_utc.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>

#include "aggregator/align/core/clock_reading.h"
#include "aggregator/align/utc/utc_trust.h"

namespace neurontrace {
namespace {

// How a judgement is made, source by source in order of trust: first the readings that probes
// exclude are removed. The rest vote by Marzullo's algorithm on one constant error of the estimate,
// which is what probes with unequal directions would have. A source is dropped if it disagrees with
// a better one or if half of its readings disagree with each other. Takes n log n time in the
// readings.

// A reading relative to the estimate that the probes give.
struct Seen {
  const HostUtcReading* reading = nullptr;
  Interval offset;  // truth minus estimate, according to the reading
  double bound_ns = 0;
  double likely_ns = 0;
  // The interval of a constant error of the estimate that would explain the reading.
  Interval error() const { return {offset.min - likely_ns, offset.max + likely_ns}; }
  // Returns whether the reading excludes something that the probes leave likely.
  bool is_tighter() const { return offset.min > -likely_ns || offset.max < likely_ns; }
};

// Returns how far one interval is beyond another, signed; 0 if they meet.
double GapBetween(Interval of, Interval other) {
  if (of.min > other.max) return of.min - other.max;
  return std::min(0.0, of.max - other.min);
}

// Requires intervals that meet.
Interval Common(Interval a, Interval b) { return {std::max(a.min, b.min), std::min(a.max, b.max)}; }

// The intersection of as many intervals as possible (Marzullo's algorithm, as in RFC 5905, section
// 11.2.1); of several, the one nearest to 0.
struct Consensus {
  Interval interval;
  size_t count = 0;
};
// Requires at least one reading; so the count is at least 1.
Consensus ConsensusOf(std::span<const Seen> seen) {
  std::vector<std::pair<double, int>> edges;  // a begin sorts before an end at the same place
  for (const Seen& one : seen) {
    edges.push_back({one.error().min, -1});
    edges.push_back({one.error().max, 1});
  }
  std::sort(edges.begin(), edges.end());
  const auto distance = [](Interval i) { return std::abs(std::clamp(0.0, i.min, i.max)); };
  Consensus best;
  size_t count = 0;
  for (size_t i = 0; i + 1 < edges.size(); ++i) {
    count = edges[i].second < 0 ? count + 1 : count - 1;
    const Interval here{edges[i].first, edges[i + 1].first};
    const bool is_nearer = count == best.count && distance(here) < distance(best.interval);
    if (edges[i].second < 0 && (count > best.count || is_nearer)) best = {here, count};
  }
  return best;
}

// Considers the sources by descending trust. One use of EvaluateUtc.
class Judge {
 public:
  Judge(std::span<const HostUtcReading> readings, const ClockSegment& by_probes,
        std::span<const UtcSource> of_reference);

  HostUtcEvaluation Run();

 private:
  // Judges all readings of one source and keeps those that agree; later sources have to agree with
  // them.
  void ApplySource(UtcSource source);
  void LeaveOut(UtcSource source, std::span<const Seen> seen, std::span<const double> beyond,
                const std::string& against);
  void ReportShift();
  // Returns the names of sources for a finding, separated by commas.
  std::string Names(std::span<const UtcSource> sources) const;

  std::vector<Seen> seen_;
  const std::span<const UtcSource> of_reference_;
  std::vector<Seen> kept_;
  std::vector<UtcSource> sources_;  // of the kept readings
  std::optional<Interval> error_;   // that all of the kept readings allow
  HostUtcEvaluation judgement_;
};

// Relates every reading to the estimate of the probes at its time, in ns.
Judge::Judge(std::span<const HostUtcReading> readings, const ClockSegment& by_probes,
             std::span<const UtcSource> of_reference)
    : of_reference_(of_reference) {
  for (const HostUtcReading& reading : readings) {
    const ClockEstimate estimate = EvaluateSegment(by_probes, reading.x_ns);
    const auto ahead = [&](uint64_t y_ns) {
      return static_cast<double>(static_cast<int64_t>(y_ns - estimate.y_ns));
    };
    seen_.push_back({&reading,
                     {ahead(reading.y_min_ns), ahead(reading.y_max_ns)},
                     static_cast<double>(estimate.bound_ns),
                     static_cast<double>(estimate.likely_bound_ns)});
  }
}

std::string Judge::Names(std::span<const UtcSource> sources) const {
  std::string names;
  for (const UtcSource source : sources) {
    if (!names.empty()) names += ", ";
    names += NameOf(source);
  }
  return names;
}

// Counts and reports rejected readings; `beyond` has an entry for each of `seen`, 0 if it is kept.
void Judge::LeaveOut(UtcSource source, std::span<const Seen> seen, std::span<const double> beyond,
                     const std::string& against) {
  size_t count = 0;
  double worst = 0;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (beyond[i] == 0) continue;
    if (count++ == 0) begin_ns = seen[i].reading->x_ns;
    end_ns = seen[i].reading->x_ns;
    if (std::abs(beyond[i]) > std::abs(worst)) worst = beyond[i];
  }
  if (count == 0) return;
  judgement_.rejected += count;
  judgement_.findings.push_back({ClockFindingKind::kRejectedEvidence, begin_ns, end_ns,
                                 std::llround(worst),
                                 fmt::format("UTC from {} (the reference's from {}) contradicts {} "
                                             "by up to {:+.1f} us; {} of {} readings are ignored",
                                             NameOf(source), Names(of_reference_), against,
                                             worst / 1e3, count, seen.size())});
}

void Judge::ApplySource(UtcSource source) {
  std::vector<Seen> all;
  std::copy_if(seen_.begin(), seen_.end(), std::back_inserter(all),
               [&](const Seen& one) { return one.reading->source == source; });
  std::vector<double> beyond;
  // What is impossible by the probes takes no part in the vote.
  std::vector<Seen> possible;
  for (const Seen& one : all) {
    beyond.push_back(GapBetween(one.offset, {-one.bound_ns, one.bound_ns}));
    if (beyond.back() == 0) possible.push_back(one);
  }
  LeaveOut(source, all, beyond, "the bounds of the probes");
  if (possible.empty()) return;
  const Consensus consensus = ConsensusOf(possible);
  const bool contradicts_better =
      error_.has_value() && GapBetween(consensus.interval, *error_) != 0;
  const Interval agreed = contradicts_better ? *error_ : consensus.interval;
  // If half or more of a source's readings contradict the rest, none of them is used.
  const bool is_out = contradicts_better || consensus.count * 2 <= possible.size();
  beyond.clear();
  double worst = contradicts_better ? GapBetween(consensus.interval, *error_) : 0;
  for (const Seen& one : possible) {
    beyond.push_back(GapBetween(one.error(), agreed));
    if (std::abs(beyond.back()) > std::abs(worst)) worst = beyond.back();
  }
  // The whole source is reported as rejected; readings without a contradiction of their own get the
  // worst one.
  if (is_out) {
    std::replace(beyond.begin(), beyond.end(), 0.0, worst);
  }
  LeaveOut(source, possible, beyond,
           contradicts_better ? "UTC from " + Names(sources_) : "its other readings");
  if (is_out) return;
  for (size_t i = 0; i < possible.size(); ++i) {
    if (beyond[i] == 0) kept_.push_back(possible[i]);
  }
  // Sources narrow the error one after another, as each has to meet the intersection so far.
  error_ = error_.has_value() ? Common(*error_, consensus.interval) : consensus.interval;
  sources_.push_back(source);
}

// Reports that the directions differ: half of the difference is what the estimate moves by.
void Judge::ReportShift() {
  const auto [first, last] = std::minmax_element(
      kept_.begin(), kept_.end(),
      [](const Seen& a, const Seen& b) { return a.reading->x_ns < b.reading->x_ns; });
  judgement_.findings.push_back(
      {ClockFindingKind::kRejectedEvidence, first->reading->x_ns, last->reading->x_ns,
       std::llround(judgement_.shift_ns),
       fmt::format(
           "UTC from {} (the reference's from {}) shows that probes take {:.1f} us {} to the "
           "reference than back, within {:.1f} us; the estimate is shifted by {:+.1f} us",
           Names(sources_), Names(of_reference_), 2 * std::abs(judgement_.shift_ns) / 1e3,
           judgement_.shift_ns < 0 ? "more" : "less", 2 * judgement_.margin_ns / 1e3,
           judgement_.shift_ns / 1e3)});
}

// Must be called once: it moves the judgement out.
HostUtcEvaluation Judge::Run() {
  for (const UtcSource source : kUtcSourcesByTrust) ApplySource(source);
  if (kept_.empty()) return std::move(judgement_);
  // 0 is not among the possible errors, so the assumption of equal directions is wrong.
  if (error_->min > 0 || error_->max < 0) {
    double likely_ns = kept_.front().likely_ns;
    for (const Seen& one : kept_) likely_ns = std::min(likely_ns, one.likely_ns);
    judgement_.shift_ns = error_->middle();
    // The probes' own likely sides are as far apart as they were.
    judgement_.margin_ns = std::max(0.0, error_->width() / 2 - likely_ns);
    ReportShift();
  }
  // WithUtc merges them with the probes' constraints, which are ascending too.
  std::sort(kept_.begin(), kept_.end(), [](const Seen& a, const Seen& b) {
    return std::tie(a.reading->x_ns, a.reading->source, a.reading->y_min_ns, a.reading->y_max_ns) <
           std::tie(b.reading->x_ns, b.reading->source, b.reading->y_min_ns, b.reading->y_max_ns);
  });
  for (const Seen& one : kept_) {
    judgement_.is_tighter = judgement_.is_tighter || one.is_tighter();
    judgement_.constraints.push_back({.x_ns = one.reading->x_ns,
                                      .likely_min_ns = one.reading->y_min_ns,
                                      .likely_max_ns = one.reading->y_max_ns,
                                      .source = HostUtcEvaluation::kSource});
  }
  return std::move(judgement_);
}

}  // namespace

// Readings that are not sound, outside the stretch or too far from what is known of UTC are skipped
// without being counted.
std::vector<HostUtcReading> HostReadingsOf(std::span<const UtcReading> readings,
                                           const ReferenceUtc::Epoch& epoch, uint64_t x_begin_ns,
                                           uint64_t x_end_ns) {
  std::vector<HostUtcReading> of;
  for (const UtcReading& reading : readings) {
    if (!IsSound(reading) || reading.raw_ns < x_begin_ns || reading.raw_ns > x_end_ns) continue;
    const std::optional<ReferenceTimes> times = ReferenceTimesOf(epoch, reading);
    if (!times.has_value()) continue;
    of.push_back({reading.raw_ns, times->earliest_ns, times->latest_ns, reading.source});
  }
  std::sort(of.begin(), of.end(), [](const HostUtcReading& a, const HostUtcReading& b) {
    return std::tie(a.x_ns, a.source, a.y_min_ns, a.y_max_ns) <
           std::tie(b.x_ns, b.source, b.y_min_ns, b.y_max_ns);
  });
  return of;
}

HostUtcEvaluation EvaluateUtc(std::span<const HostUtcReading> readings,
                              const ClockSegment& by_probes,
                              std::span<const UtcSource> of_reference) {
  if (readings.empty() || by_probes.knots.empty()) return {};
  return Judge(readings, by_probes, of_reference).Run();
}

// A margin of 0 or more widens both sides. FitPair needs the result in ascending order of x.
std::vector<ClockConstraint> WithUtc(std::vector<ClockConstraint> probes,
                                     const HostUtcEvaluation& utc) {
  // The sides are rounded away from the middle, so that nothing likely is excluded.
  const auto up = static_cast<int64_t>(std::ceil(utc.shift_ns + utc.margin_ns));
  const auto down = static_cast<int64_t>(std::floor(utc.shift_ns - utc.margin_ns));
  for (ClockConstraint& probe : probes) {
    if (probe.likely_max_ns != ClockConstraint::kNoMax) {
      probe.likely_max_ns += static_cast<uint64_t>(up);
    }
    if (probe.likely_min_ns != ClockConstraint::kNoMin) {
      probe.likely_min_ns += static_cast<uint64_t>(down);
    }
  }
  std::vector<ClockConstraint> all;
  all.reserve(probes.size() + utc.constraints.size());
  std::merge(probes.begin(), probes.end(), utc.constraints.begin(), utc.constraints.end(),
             std::back_inserter(all),
             [](const ClockConstraint& a, const ClockConstraint& b) { return a.x_ns < b.x_ns; });
  return all;
}

}  // namespace neurontrace
