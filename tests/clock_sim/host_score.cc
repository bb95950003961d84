// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/host_score.h"

#include <algorithm>
#include <cmath>

#include "tests/clock_sim/minus.h"

namespace neurontrace {
namespace {

enum DicePart : uint64_t { kInstantDice = 201, kPairDice = 202, kFaultDice = 203 };

std::vector<int64_t> DrawInstants(const HostScenario& scenario, uint64_t seed) {
  Dice dice(seed, kInstantDice);
  std::vector<int64_t> instants(scenario.instants);
  for (int64_t& instant : instants) {
    instant = static_cast<int64_t>(dice.Unit() * static_cast<double>(scenario.duration_ns));
  }
  std::sort(instants.begin(), instants.end());
  return instants;
}

// When something happens to the host's clocks.
std::vector<int64_t> FaultTimes(const HostPlan& plan, const Host& host) {
  std::vector<int64_t> times;
  for (const ClockJump& jump : plan.clock.jumps) {
    times.push_back(jump.at_ns);
    times.push_back(host.truth.raw.WhenRunning(jump.at_ns));
  }
  for (const TimeSpan& pause : plan.paused)
    times.insert(times.end(), {pause.begin_ns, pause.end_ns});
  for (const NetworkPath::RouteChange& change : plan.path.route_changes) {
    times.push_back(change.at_ns);
  }
  const std::vector<Steering>& steering = host.truth.steered.schedule();
  for (size_t i = 1; i < steering.size(); ++i) {
    times.push_back(host.truth.raw.TimeOf(steering[i].raw_ns));
  }
  return times;
}

// The shared instants, and some from a microsecond to a second before and after each fault.
std::vector<Instant> WithFaults(std::span<const int64_t> shared, const HostPlan& plan,
                                const Host& host, int64_t duration_ns, Dice dice) {
  constexpr int kEach = 10;
  std::vector<Instant> instants;
  for (const int64_t at : shared) instants.push_back({.true_ns = at});
  for (const int64_t fault : FaultTimes(plan, host)) {
    for (int i = 0; i < kEach; ++i) {
      const double away_ns = std::pow(10, dice.Between(3, 9));
      const int64_t at = fault + static_cast<int64_t>(dice.Chance(0.5) ? away_ns : -away_ns);
      if (at > 0 && at < duration_ns) instants.push_back({.true_ns = at, .is_shared = false});
    }
  }
  std::stable_sort(instants.begin(), instants.end(),
                   [](const Instant& a, const Instant& b) { return a.true_ns < b.true_ns; });
  return instants;
}

std::vector<Stamp> TakeStamps(const Host& host, std::span<const Instant> instants) {
  std::vector<Stamp> stamps;
  stamps.reserve(instants.size());
  for (const Instant& instant : instants) {
    const uint64_t raw_ns = host.truth.raw.Read(instant.true_ns);
    stamps.push_back({.raw_ns = raw_ns, .realtime_ns = host.truth.steered.Realtime(raw_ns)});
  }
  return stamps;
}

// Returns whether the model marks this time as doubtful: by a finding, or as between two segments.
bool IsFlagged(const ClockModel& model, uint64_t x_ns) {
  for (const ClockFinding& finding : model.findings) {
    if (x_ns >= finding.x_begin_ns && x_ns <= finding.x_end_ns) return true;
  }
  for (size_t i = 1; i < model.segments.size(); ++i) {
    if (x_ns >= model.segments[i - 1].knots.back().x_ns &&
        x_ns <= model.segments[i].knots.front().x_ns) {
      return true;
    }
  }
  return false;
}

struct Break {
  uint64_t begin_ns;
  uint64_t end_ns;
};

// Where the model breaks for a reason in the host, not in the reference.
std::vector<Break> BreaksOf(const ClockModel& model) {
  std::vector<Break> breaks;
  for (size_t i = 1; i < model.segments.size(); ++i) {
    if (model.segments[i].cause == SegmentCause::kReferenceEpoch) continue;
    breaks.push_back(
        {model.segments[i - 1].knots.back().x_ns, model.segments[i].knots.front().x_ns});
  }
  return breaks;
}

void ScoreBreaks(const HostPlan& plan, const Host& host, const ReferenceClock& reference,
                 const ClockModel& model, HostScore& score) {
  constexpr double kLocatedNs = 0.5e9;
  constexpr double kRelatedNs = 5e9;
  if (model.segments.empty()) return;
  const std::vector<Break> breaks = BreaksOf(model);
  const auto distance = [](const Break& at, uint64_t x_ns) {
    return std::abs(Minus(at.begin_ns, x_ns) + Minus(at.end_ns, x_ns)) / 2;
  };
  std::vector<uint64_t> excused;
  for (const ClockJump& jump : plan.clock.jumps) {
    const uint64_t before = host.truth.raw.Read(jump.at_ns - 1);
    double nearest = 1e30;
    for (const Break& at : breaks) {
      // The step itself is within the break: neither reading of raw around it counts as far.
      const uint64_t after = host.truth.raw.Read(host.truth.raw.WhenRunning(jump.at_ns));
      nearest = std::min(nearest, std::min(distance(at, before), distance(at, after)));
    }
    score.steps_located.Add(nearest <= kLocatedNs);
    if (nearest <= kLocatedNs) score.step_distance.Add(nearest);
    excused.push_back(before);
  }
  for (const HostFault& fault : plan.faults) excused.push_back(host.truth.raw.Read(fault.at_ns));
  for (const ReferenceClock::Restart& restart : reference.restarts()) {
    excused.push_back(host.truth.raw.Read(restart.at_ns));
  }
  for (const Break& at : breaks) {
    const bool is_true = std::any_of(excused.begin(), excused.end(), [&](uint64_t x_ns) {
      return Minus(at.begin_ns, x_ns) < kRelatedNs && Minus(x_ns, at.end_ns) < kRelatedNs;
    });
    score.false_breaks += is_true ? 0 : 1;
  }
}

// False where the answer is not one: the reference is down, or nothing runs on the host.
bool CanStamp(const MappedHost& of, int64_t true_ns) {
  for (const ReferenceClock::Restart& restart : of.reference.restarts()) {
    if (true_ns >= restart.at_ns - kSecond && true_ns < restart.at_ns + restart.down_ns + kSecond) {
      return false;
    }
  }
  return of.host.truth.raw.WhenRunning(true_ns) == true_ns && !IsWithin(of.plan.paused, true_ns);
}

void ScoreShared(const MappedHost& of, int64_t true_ns, const Mapped& mapped, double error,
                 HostScore& score) {
  const NetworkPath& path = of.host.truth.path;
  const double asymmetry = static_cast<double>(path.LeastDelayNs(Way::kForward, true_ns) -
                                               path.LeastDelayNs(Way::kBackward, true_ns));
  score.own.Add(error);
  score.beyond.Add(std::max(0.0, std::abs(error) - std::abs(asymmetry) / 2));
  score.bound.Add(mapped.bound_ns);
  score.likely_bound.Add(mapped.likely_bound_ns);
  score.covered.Add(std::abs(error) <= mapped.bound_ns);
  score.likely_covered.Add(std::abs(error) <= mapped.likely_bound_ns);
}

}  // namespace

std::vector<HostScore> RunHostTrial(const HostScenario& scenario,
                                    std::span<const HostMethod> methods, uint64_t seed) {
  const ReferenceClock reference = MakeReference(scenario, seed);
  const std::vector<int64_t> shared = DrawInstants(scenario, seed);
  std::vector<HostScore> scores(methods.size());
  std::vector<std::vector<HostErrors>> errors(methods.size());
  for (uint32_t member = 0; member < scenario.hosts; ++member) {
    const HostPlan plan = PlanHost(scenario, seed, member);
    const Host host =
        PlayHost(plan, reference, scenario.duration_ns + scenario.after_ns, seed, member);
    const std::vector<Instant> instants =
        WithFaults(shared, plan, host, scenario.duration_ns, Dice(seed, kFaultDice, member));
    const std::vector<Stamp> stamps = TakeStamps(host, instants);
    const MappedHost mapped_host{.scenario = scenario,
                                 .plan = plan,
                                 .host = host,
                                 .reference = reference,
                                 .instants = instants,
                                 .stamps = stamps};
    for (size_t i = 0; i < methods.size(); ++i) {
      const HostMapping mapping = methods[i].map(host.records, scenario.realtime_stamps, stamps);
      errors[i].push_back(ScoreHost(mapped_host, mapping, scores[i]));
      if (member > 0 || mapping.model.segments.empty()) continue;
      const HostMapping again = methods[i].map(host.records, scenario.realtime_stamps, stamps);
      scores[i].refits.Add(again.model == mapping.model);
    }
  }
  for (size_t i = 0; i < methods.size(); ++i) {
    ScorePairs(errors[i], Dice(seed, kPairDice), scores[i]);
  }
  return scores;
}

void HostScore::Merge(const HostScore& other) {
  own.Merge(other.own);
  pair.Merge(other.pair);
  spread.Merge(other.spread);
  beyond.Merge(other.beyond);
  bound.Merge(other.bound);
  likely_bound.Merge(other.likely_bound);
  covered.Merge(other.covered);
  likely_covered.Merge(other.likely_covered);
  pairs_covered.Merge(other.pairs_covered);
  pairs_likely_covered.Merge(other.pairs_likely_covered);
  misses_flagged.Merge(other.misses_flagged);
  near_error.Merge(other.near_error);
  near_covered.Merge(other.near_covered);
  near_misses_flagged.Merge(other.near_misses_flagged);
  steps_located.Merge(other.steps_located);
  step_distance.Merge(other.step_distance);
  false_breaks += other.false_breaks;
  gave_up += other.gave_up;
  hosts += other.hosts;
  exchanges += other.exchanges;
  knots += other.knots;
  fit_ns += other.fit_ns;
  refits.Merge(other.refits);
  host_seconds += other.host_seconds;
}

HostErrors ScoreHost(const MappedHost& of, const HostMapping& mapping, HostScore& score) {
  HostErrors errors;
  for (size_t i = 0; i < of.instants.size(); ++i) {
    const Instant& instant = of.instants[i];
    const Mapped& mapped = mapping.mapped[i];
    const bool stamps = CanStamp(of, instant.true_ns);
    const double error = Minus(mapped.reference_ns, of.reference.Read(instant.true_ns));
    if (instant.is_shared) {
      errors.error_ns.push_back(stamps ? error : HostErrors::kAbsent);
      errors.bound_ns.push_back(mapped.bound_ns);
      errors.likely_bound_ns.push_back(mapped.likely_bound_ns);
    }
    if (!stamps) continue;
    const bool is_covered = std::abs(error) <= mapped.bound_ns;
    if (instant.is_shared) {
      ScoreShared(of, instant.true_ns, mapped, error, score);
    } else {
      score.near_error.Add(error);
      score.near_covered.Add(is_covered);
    }
    if (!is_covered) {
      (instant.is_shared ? score.misses_flagged : score.near_misses_flagged)
          .Add(IsFlagged(mapping.model, of.stamps[i].raw_ns));
    }
  }
  ScoreBreaks(of.plan, of.host, of.reference, mapping.model, score);
  ++score.hosts;
  score.gave_up += mapping.gave_up ? 1 : 0;
  score.exchanges += of.host.records.evidence.exchanges.size();
  for (const ClockSegment& segment : mapping.model.segments) score.knots += segment.knots.size();
  score.fit_ns += mapping.fit_ns;
  score.host_seconds += static_cast<double>(of.scenario.duration_ns + of.scenario.after_ns) * 1e-9;
  return errors;
}

void ScorePairs(std::span<const HostErrors> hosts, Dice dice, HostScore& score) {
  constexpr size_t kAllPairs = 64;
  constexpr size_t kDrawn = 2000;
  if (hosts.empty()) return;
  const auto compare = [&](const HostErrors& a, const HostErrors& b, size_t i) {
    if (a.error_ns[i] == HostErrors::kAbsent || b.error_ns[i] == HostErrors::kAbsent) return;
    const double error = std::abs(a.error_ns[i] - b.error_ns[i]);
    score.pair.Add(error);
    score.pairs_covered.Add(error <= a.bound_ns[i] + b.bound_ns[i]);
    score.pairs_likely_covered.Add(error <= a.likely_bound_ns[i] + b.likely_bound_ns[i]);
  };
  for (size_t i = 0; i < hosts.front().error_ns.size(); ++i) {
    double least = HostErrors::kAbsent;
    double most = -HostErrors::kAbsent;
    for (const HostErrors& host : hosts) {
      if (host.error_ns[i] == HostErrors::kAbsent) continue;
      least = std::min(least, host.error_ns[i]);
      most = std::max(most, host.error_ns[i]);
    }
    if (most > least) score.spread.Add(most - least);
    if (hosts.size() <= kAllPairs) {
      for (size_t a = 0; a < hosts.size(); ++a) {
        for (size_t b = a + 1; b < hosts.size(); ++b) compare(hosts[a], hosts[b], i);
      }
      continue;
    }
    for (size_t drawn = 0; drawn < kDrawn; ++drawn) {
      const size_t a = dice.Next64() % hosts.size();
      const size_t b = dice.Next64() % hosts.size();
      if (a != b) compare(hosts[a], hosts[b], i);
    }
  }
}

}  // namespace neurontrace
