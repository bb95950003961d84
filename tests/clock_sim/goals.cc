// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/goals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "tests/clock_sim/markdown.h"

namespace neurontrace {
namespace {

constexpr double kAny = 1e30;

class Checker {
 public:
  explicit Checker(const SimulationResult& result) : result_(result) {}

  void Coverage();
  void HostErrors();
  void Asymmetry();
  void Utc();
  void Devices();
  void Steps();
  void Costs();
  void Models();
  std::vector<GoalCheck> Take() { return std::move(checks_); }

 private:
  void Add(std::string goal, std::string asked, std::string measured, bool met) {
    checks_.push_back({std::move(goal), std::move(asked), std::move(measured), met});
  }
  const HostRow* Row(std::string_view name) const {
    const auto row = std::find_if(result_.host_rows.begin(), result_.host_rows.end(),
                                  [&](const HostRow& r) { return r.scenario->name == name; });
    return row == result_.host_rows.end() ? nullptr : &*row;
  }
  // Errors are asked of twenty runs. Of few, in which one that is hard counts for more, half as
  // much.
  double Slack() const { return result_.options.seeds < 20 ? 2 : 1; }
  void Error(std::string_view scenario, double p99_us, double max_us);
  void Better(std::string_view scenario, double times);

  const SimulationResult& result_;
  std::vector<GoalCheck> checks_;
};

std::string DescribeMissed(const Share& share) {
  return fmt::format("{} of {} missed", share.of - share.held, share.of);
}

void Checker::Coverage() {
  Share detected;
  Share blind;
  Share flagged;
  Share pairs;
  Share near;
  Share likely;
  for (const HostRow& row : result_.host_rows) {
    const HostScore& score = row.scores.back();
    (row.scenario->blind ? blind : detected).Merge(score.covered);
    if (row.scenario->blind) {
      flagged.Merge(score.misses_flagged);
      flagged.Merge(score.near_misses_flagged);
    } else {
      near.Merge(score.near_covered);
    }
    if (!row.scenario->blind) pairs.Merge(score.pairs_covered);
    if (row.scenario->symmetric && !row.scenario->blind && !row.scenario->beyond_assumptions) {
      likely.Merge(score.likely_covered);
    }
  }
  if (detected.of > 0) {
    Add("G1", "every stamp within its bound, faults reported or not", DescribeMissed(detected),
        detected.held == detected.of);
    Add("G1", "every pair of stamps within their bounds, faults reported or not",
        DescribeMissed(pairs), pairs.held == pairs.of);
  }
  if (near.of > 0) {
    Add("G1", "every stamp within a second of a fault within its bound", DescribeMissed(near),
        near.held == near.of);
  }
  if (likely.of > 0) {
    Add("G1", "99.9 % within the likely bound where paths are symmetric", DescribeMissed(likely),
        likely.Percent() >= 99.9);
  }
  if (blind.of > 0) {
    Add("G1", "99.9 % within the bound where faults are unreported", DescribeMissed(blind),
        blind.Percent() >= 99.9);
    Add("G1", "... and the model flags where the others are, near faults too",
        fmt::format("{} of {} misses flagged", flagged.held, flagged.of),
        flagged.held == flagged.of);
  }
}

void Checker::Error(std::string_view scenario, double p99_us, double max_us) {
  const HostRow* row = Row(scenario);
  if (row == nullptr) return;
  p99_us *= Slack();
  if (max_us != kAny) max_us *= Slack();
  const LogHistogram& pair = row->scores.back().pair;
  Add("G2",
      fmt::format("{}: p99 of pairs at most {} us", scenario, p99_us) +
          (max_us == kAny ? "" : fmt::format(", max {} us", max_us)),
      fmt::format("{} / {}", Microseconds(pair.Quantile(0.99)), Microseconds(pair.max())),
      pair.Quantile(0.99) <= p99_us * 1e3 && pair.max() <= max_us * 1e3);
}

// Than NTP's min-of-8.
void Checker::Better(std::string_view scenario, double times) {
  constexpr size_t kClockFilter = 1;
  const HostRow* row = Row(scenario);
  if (row == nullptr) return;
  const double ratio = row->scores[kClockFilter].pair.Quantile(0.99) /
                       std::max(1.0, row->scores.back().pair.Quantile(0.99));
  Add("G2",
      fmt::format("{}: p99 {} times better than {}", scenario, times,
                  result_.host_methods[kClockFilter]),
      fmt::format("{:.0f} times", ratio), ratio >= times);
}

void Checker::HostErrors() {
  for (const std::string_view scenario : {"S1", "S4"}) Error(scenario, 0.5, 1);
  // The largest is what REALTIME shows twice when it is set back, which no map can tell apart.
  for (const std::string_view scenario : {"S6", "S6-fast", "S6-leap"}) Error(scenario, 0.5, kAny);
  Error("S2", 1.5, 3);
  Better("S1", 50);
  Better("S4", 500);
  if (const HostRow* row = Row("N1000"); row != nullptr) {
    const double spread = row->scores.back().spread.Quantile(0.999);
    Add("G2", "1,000 hosts: all within 3 us of each other at 99.9 % of the instants",
        Microseconds(spread), spread <= 3e3);
  }
}

void Checker::Asymmetry() {
  const HostRow* row = Row("S3");
  if (row == nullptr) return;
  const HostScore& score = row->scores.back();
  Add("G3", "S3: error at most half of the asymmetry and 1 us", Microseconds(score.beyond.max()),
      score.beyond.max() <= 1e3);
  constexpr double kRoundTripFloor = 60e3;
  const double most = kRoundTripFloor / 2 * 1.05 + 500;
  Add("G3", fmt::format("S3: median bound at most {} us", Microseconds(most)),
      Microseconds(score.bound.Quantile(0.5)), score.bound.Quantile(0.5) <= most);
}

// Two promises of 5 us each, and what a fit that follows them is off besides.
void Checker::Utc() {
  const HostRow* row = Row("U1");
  if (row == nullptr) return;
  const LogHistogram& own = row->scores.back().own;
  Add("G3", "U1: error at most what two promises of 5 us leave open, and 2 us",
      Microseconds(own.max()), own.max() <= 12e3);
}

void Checker::Devices() {
  Share brackets;
  Share ascends;
  Share covered;
  for (const DeviceRow& row : result_.device_rows) {
    const DeviceScore& score = row.scores.back();
    brackets.Merge(score.brackets);
    ascends.Merge(score.ascends);
    covered.Merge(score.covered);
    const bool is_long = row.scenario->execution_least_ns >= 2 * kSecond;
    const double p99_us = (is_long ? 10 : 1) * Slack();
    const double max_us = (is_long ? 20 : 3) * Slack();
    Add("G4", fmt::format("{}: p99 at most {} us, max {} us", row.scenario->name, p99_us, max_us),
        fmt::format("{} / {}", Microseconds(score.error.Quantile(0.99)),
                    Microseconds(score.error.max())),
        score.error.Quantile(0.99) <= p99_us * 1e3 && score.error.max() <= max_us * 1e3);
    const double ratio =
        row.scores.front().error.Quantile(0.99) / std::max(1.0, score.error.Quantile(0.99));
    if (is_long) continue;
    Add("G4", fmt::format("{}: p99 50 times better than the vendor's", row.scenario->name),
        fmt::format("{:.0f} times", ratio), ratio >= 50);
  }
  if (brackets.of == 0) return;
  Add("G4", "no execution outside its bracket", DescribeMissed(brackets),
      brackets.held == brackets.of);
  Add("G4", "the events of a core ascend", DescribeMissed(ascends), ascends.held == ascends.of);
  Add("G1", "every hardware event within its bound", DescribeMissed(covered),
      covered.held == covered.of);
}

void Checker::Steps() {
  Share located;
  uint64_t false_breaks = 0;
  double host_seconds = 0;
  for (const HostRow& row : result_.host_rows) {
    const HostScore& score = row.scores.back();
    if (row.scenario->blind) located.Merge(score.steps_located);
    if (row.scenario->beyond_assumptions) continue;
    false_breaks += score.false_breaks;
    host_seconds += score.host_seconds;
  }
  if (located.of > 0) {
    Add("G6", "unreported steps of 20 us and more: located within 0.5 s",
        fmt::format("{} of {}", located.held, located.of), located.held == located.of);
  }
  if (host_seconds > 0) {
    const double days = host_seconds / 86'400;
    Add("G6", "at most one false break a host and day, except in S8",
        fmt::format("{} in {:.1f} host-days", false_breaks, days),
        static_cast<double>(false_breaks) <= days);
  }
}

void Checker::Costs() {
  if (!result_.costs) return;
  constexpr double kFleet = 1000;
  const neurontrace::Costs& costs = *result_.costs;
  Add("G7", "live view: at most 2 us an exchange",
      fmt::format("{:.2f} us", costs.LiveNsAnExchange() / 1e3), costs.LiveNsAnExchange() <= 2000);
  Add("G7", "live view: at most 4 KiB a clock", fmt::format("{} B", costs.live_bytes),
      costs.live_bytes <= 4096);
  Add("G7", "conversion: at most 5 ns an event", fmt::format("{:.2f} ns", costs.conversion_ns),
      costs.conversion_ns <= 5);
  const double fleet_s = static_cast<double>(costs.fit_ns) * 1e-9 * kFleet / costs.hosts;
  Add("G7", "final fit of 1,000 hosts and an hour, on one core: at most 30 s",
      fmt::format("{:.1f} s ({:.2f} us an exchange, from {} hosts)", fleet_s,
                  costs.FitNsAnExchange() / 1e3, costs.hosts),
      fleet_s <= 30);
}

void Checker::Models() {
  Share refits;
  double most = 0;
  std::string_view name;
  for (const HostRow& row : result_.host_rows) {
    const HostScore& score = row.scores.back();
    refits.Merge(score.refits);
    const double rate = static_cast<double>(score.knots) / score.host_seconds;
    if (!row.scenario->beyond_assumptions && rate > most) {
      most = rate;
      name = row.scenario->name;
    }
  }
  if (refits.of == 0) return;
  Add("G8", "a second fit gives the same model, bit for bit", DescribeMissed(refits),
      refits.held == refits.of);
  Add("G8", "at most 0.2 knots a second and clock", fmt::format("{:.2f} in {}", most, name),
      most <= 0.2);
}

struct Shortfall {
  std::string_view asked;  // how the check begins
  std::string_view why;
};

// What is not reached yet, and why: nothing that a test has to find again.
constexpr std::array kShortfalls = {
    Shortfall{"S4: p99 of pairs at most 0.5",
              "no information in one direction for 15 s, and the clock wanders"},
    Shortfall{"at most 0.2 knots", "the more jitter, the more corners"},
};

void Explain(GoalCheck& check) {
  if (check.met) return;
  for (const Shortfall& shortfall : kShortfalls) {
    if (std::string_view(check.asked).starts_with(shortfall.asked)) check.why = shortfall.why;
  }
}

}  // namespace

std::vector<GoalCheck> CheckGoals(const SimulationResult& result) {
  Checker checker(result);
  checker.Coverage();
  checker.HostErrors();
  checker.Asymmetry();
  checker.Utc();
  checker.Devices();
  checker.Steps();
  checker.Costs();
  checker.Models();
  std::vector<GoalCheck> checks = checker.Take();
  for (GoalCheck& check : checks) Explain(check);
  std::stable_sort(checks.begin(), checks.end(),
                   [](const GoalCheck& a, const GoalCheck& b) { return a.goal < b.goal; });
  return checks;
}

std::string GoalTable(const std::vector<GoalCheck>& checks) {
  if (checks.empty()) return "";
  MarkdownTable table({"goal", "asked", "measured", "met"});
  for (const GoalCheck& check : checks) {
    const std::string met = check.met ? "yes" : check.why.empty() ? "NO" : "no: " + check.why;
    table.AddRow({check.goal, check.asked, check.measured, met});
  }
  return table.ToText();
}

}  // namespace neurontrace
