// SPDX-License-Identifier: Apache-2.0
#include "tests/insight_sim/accuracy.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cassert>
#include <span>
#include <thread>
#include <utility>

#include "aggregator/insight/insight_engine.h"
#include "aggregator/insight/verdict_text.h"
#include "lib/base/mutex.h"
#include "simulate/fleet_dice.h"
#include "simulate/fleet_model.h"

namespace neurontrace {
namespace {

constexpr VerdictKind kSlowKinds[] = {
    VerdictKind::kSlowCore,   VerdictKind::kSlowHost,       VerdictKind::kSlowProcess,
    VerdictKind::kInputStall, VerdictKind::kMemoryStall,    VerdictKind::kHostCode,
    VerdictKind::kUnevenRole, VerdictKind::kSlowCollective, VerdictKind::kUnevenData};
constexpr VerdictKind kStopKinds[] = {VerdictKind::kHangNotEntered, VerdictKind::kHangInside,
                                      VerdictKind::kDeadWorker, VerdictKind::kDeviceError};
constexpr double kMagnitudes[] = {0.05, 0.1, 0.2, 0.5, 1.0};
constexpr HoleKind kHoles[] = {HoleKind::kLosses, HoleKind::kUnknownLosses, HoleKind::kMissing,
                               HoleKind::kLateAgent, HoleKind::kWrongIds};

struct Noise {
  const char* name;
  double low;
  double high;
};
constexpr Noise kNoises[] = {{"0.4 %", 0.004, 0.004}, {"1 %", 0.01, 0.01}, {"10-25 %", 0.1, 0.25}};

// Nanoseconds of this thread's processor time.
uint64_t ThreadNs() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

class EngineSink final : public FleetSink {
 public:
  EngineSink(InsightEngine& engine, std::span<const uint32_t> core_of)
      : engine_(engine), core_of_(core_of) {}

  void Take(std::span<const FleetEvent> events) override {
    batch_.clear();
    for (const FleetEvent& event : events) {
      if (const auto seen = ToInsight(event, core_of_[event.rank])) batch_.push_back(*seen);
    }
    events_ += batch_.size();
    const uint64_t before_ns = ThreadNs();
    engine_.Take(batch_);
    spent_ns_ += ThreadNs() - before_ns;
  }
  uint64_t events() const { return events_; }
  uint64_t spent_ns() const { return spent_ns_; }

 private:
  InsightEngine& engine_;
  const std::span<const uint32_t> core_of_;
  std::vector<InsightEvent> batch_;
  uint64_t events_ = 0;
  uint64_t spent_ns_ = 0;
};

// Makes the windows of each section.
class TrialMaker {
 public:
  explicit TrialMaker(const AccuracyOptions& options) : options_(options) {}

  std::vector<AccuracyTrial> Make() {
    AddFaults();
    AddStops();
    AddPairs();
    AddHoles();
    AddUneven();
    AddFaultFree();
    return std::move(trials_);
  }

 private:
  FleetPlan PlanOf(uint32_t number, const Noise& noise) {
    FleetPlan plan;
    const bool is_small = options_.is_quick || options_.is_small;
    plan.dp = is_small ? 8 : 32;
    plan.pp = is_small ? 2 : 4;
    plan.tp = is_small ? 4 : 8;
    plan.processes_per_instance = is_small ? 2 : 8;
    plan.steps = 40;
    plan.seed = options_.first_seed + number;
    plan.noise_low = noise.low;
    plan.noise_high = noise.high;
    return plan;
  }
  // A fault with a target that the seed draws. In every second seed it begins in mid-run.
  PlannedFault FaultOf(const FleetPlan& plan, VerdictKind kind, double magnitude, uint64_t part) {
    FleetDice dice(plan.seed, 100 + part, static_cast<uint64_t>(kind));
    const auto targets = static_cast<double>(FaultTargets(plan, kind));
    const bool needs_history = kind == VerdictKind::kSlowCollective || StopsFleet(kind);
    PlannedFault fault{kind, magnitude, static_cast<uint32_t>(dice.Unit() * targets)};
    if (needs_history || plan.seed % 2 == 1) fault.begin = 0.5;
    return fault;
  }
  void Add(AccuracySection section, std::string row, std::string column, FleetPlan plan,
           double magnitude = 0) {
    if (!options_.only.empty() && row.find(options_.only) == std::string::npos) return;
    trials_.push_back({section, std::move(row), std::move(column), magnitude, std::move(plan)});
  }
  std::span<const Noise> noises() const {
    return std::span(kNoises).first(options_.is_quick ? 2 : 3);
  }

  void AddFaults() {
    for (const VerdictKind kind : kSlowKinds) {
      for (const Noise& noise : noises()) {
        for (const double magnitude : kMagnitudes) {
          if (options_.is_quick && magnitude != 0.5) continue;
          for (uint32_t i = 0; i < options_.seeds; ++i) {
            FleetPlan plan = PlanOf(i, noise);
            plan.faults = {FaultOf(plan, kind, magnitude, 0)};
            Add(AccuracySection::kFault, fmt::format("{}, {}", VerdictKindName(kind), noise.name),
                fmt::format("{:.0f} %", magnitude * 100), std::move(plan), magnitude);
          }
        }
      }
    }
  }
  void AddStops() {
    for (const VerdictKind kind : kStopKinds) {
      for (const Noise& noise : noises()) {
        for (uint32_t i = 0; i < options_.seeds; ++i) {
          FleetPlan plan = PlanOf(i, noise);
          plan.faults = {FaultOf(plan, kind, 0, 0)};
          Add(AccuracySection::kStop, VerdictKindName(kind), noise.name, std::move(plan));
        }
      }
    }
  }
  void AddPairs() {
    using Pair = std::pair<VerdictKind, VerdictKind>;
    static constexpr Pair kPairs[] = {{VerdictKind::kSlowCore, VerdictKind::kSlowCore},
                                      {VerdictKind::kSlowCore, VerdictKind::kHostCode},
                                      {VerdictKind::kSlowHost, VerdictKind::kSlowCore},
                                      {VerdictKind::kSlowProcess, VerdictKind::kSlowProcess},
                                      {VerdictKind::kInputStall, VerdictKind::kMemoryStall},
                                      {VerdictKind::kSlowCollective, VerdictKind::kSlowCore},
                                      {VerdictKind::kSlowCore, VerdictKind::kUnevenRole},
                                      {VerdictKind::kSlowCore, VerdictKind::kUnevenData},
                                      {VerdictKind::kSlowCore, VerdictKind::kHangNotEntered},
                                      {VerdictKind::kSlowHost, VerdictKind::kDeadWorker}};
    for (const auto& [first, second] : kPairs) {
      for (const double magnitude : {0.5, 1.0}) {
        for (uint32_t i = 0; i < options_.seeds; ++i) {
          FleetPlan plan = PlanOf(i, kNoises[1]);
          plan.faults = {FaultOf(plan, first, 0.5, 1), FaultOf(plan, second, magnitude, 2)};
          Add(AccuracySection::kPair,
              fmt::format("{} + {}", VerdictKindName(first), VerdictKindName(second)),
              fmt::format("50 % and {:.0f} %", magnitude * 100), std::move(plan));
        }
      }
    }
  }
  // The hole has the guilty ranks, or an instance without any of them.
  PlannedHole HoleOf(const FleetPlan& plan, HoleKind kind, bool is_guilty) {
    std::vector<uint32_t> guilty = GuiltyRanks(plan, plan.faults.front());
    PlannedHole hole{kind};
    if (is_guilty && guilty.empty()) guilty = {0};
    if (is_guilty) {
      hole.ranks = guilty;
    } else {
      const uint32_t away = guilty.empty() ? 0 : plan.instance_of(guilty.front()) + 1;
      hole.ranks = GuiltyRanks(plan, {VerdictKind::kSlowHost, 0, away % plan.instances()});
    }
    if (kind == HoleKind::kLosses || kind == HoleKind::kUnknownLosses) {
      hole.begin = 0.8;
      hole.end = 0.9;
    }
    if (kind == HoleKind::kLateAgent || kind == HoleKind::kWrongIds) hole.begin = 0.4;
    return hole;
  }
  void AddHoles() {
    const auto add_kind = [&](HoleKind hole, VerdictKind kind, bool is_guilty) {
      const uint32_t seeds = std::max(1u, options_.seeds / 4);
      for (uint32_t i = 0; i < seeds; ++i) {
        FleetPlan plan = PlanOf(i, kNoises[1]);
        plan.faults = {FaultOf(plan, kind, 0.5, 0)};
        if (StopsFleet(kind)) plan.faults[0].begin = 0.95;  // behind the losses
        plan.holes = {HoleOf(plan, hole, is_guilty)};
        Add(AccuracySection::kHole,
            fmt::format("{} + {}", HoleKindName(hole), VerdictKindName(kind)),
            is_guilty ? "of the guilty" : "elsewhere", std::move(plan));
      }
    };
    for (const HoleKind hole : kHoles) {
      for (const bool is_guilty : {true, false}) {
        for (const VerdictKind kind : kSlowKinds) add_kind(hole, kind, is_guilty);
        for (const VerdictKind kind : kStopKinds) add_kind(hole, kind, is_guilty);
      }
    }
  }
  // Jobs that are uneven by design, and clocks that are wrong: no rank is to be named.
  void AddUneven() {
    for (const Noise& noise : noises()) {
      for (uint32_t i = 0; i < options_.seeds; ++i) {
        FleetPlan plan = PlanOf(i, noise);
        plan.stage_weights.assign(plan.pp, 1.0);
        plan.stage_weights.back() = 1.39;
        Add(AccuracySection::kUneven, "last stage 1.39 x", noise.name, plan);
        plan = PlanOf(i, noise);
        plan.data_spread = 0.25;
        Add(AccuracySection::kUneven, "lengths of sequences, spread 25 %", noise.name, plan);
        plan.stage_weights.assign(plan.pp, 1.0);
        plan.stage_weights.back() = 1.39;
        Add(AccuracySection::kUneven, "both", noise.name, plan);
        plan = PlanOf(i, noise);
        plan.clocks = {{0, 40'000'000, 100, -200'000'000, 0.7}, {1, -3'000'000'000, -50}};
        Add(AccuracySection::kUneven, "clocks: steps and drifts", noise.name, std::move(plan));
      }
    }
  }
  void AddFaultFree() {
    for (uint32_t i = 0; i < options_.fault_free; ++i) {
      const Noise& noise = noises()[i % noises().size()];
      Add(AccuracySection::kFaultFree, "fault-free", noise.name, PlanOf(10'000 + i, noise));
    }
  }

  const AccuracyOptions& options_;
  std::vector<AccuracyTrial> trials_;
};

BaselineScore ScoreBaseline(const Golden& golden, const std::vector<uint32_t>& named) {
  BaselineScore score;
  std::vector<uint32_t> guilty;
  for (const GoldenFault& fault : golden.faults) {
    // Of a role, a group or data no rank is to be named.
    const bool has_ranks = fault.stage < 0 && fault.group == 0;
    if (has_ranks) guilty.insert(guilty.end(), fault.ranks.begin(), fault.ranks.end());
  }
  std::sort(guilty.begin(), guilty.end());
  score.is_wrong = !std::includes(guilty.begin(), guilty.end(), named.begin(), named.end());
  score.is_right = !score.is_wrong && named.size() * 2 > guilty.size();
  return score;
}

}  // namespace

std::vector<AccuracyTrial> AccuracyTrials(const AccuracyOptions& options) {
  return TrialMaker(options).Make();
}

AccuracyResult RunTrial(const AccuracyTrial& trial, bool has_text) {
  FleetModel model(trial.plan);
  const FleetPlan& plan = model.plan();
  std::vector<InsightCore> cores;
  std::vector<uint32_t> core_of(plan.ranks(), UINT32_MAX);
  std::vector<uint32_t> rank_of;
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    if (model.is_missing(rank)) continue;
    core_of[rank] = static_cast<uint32_t>(cores.size());
    rank_of.push_back(rank);
    cores.push_back({.job = "simulated",
                     .instance_id = fmt::format("i-{:04}", plan.instance_of(rank)),
                     .process = plan.process_of(rank),
                     .worker_gid = rank,
                     .nc_idx = rank % plan.cores_per_process,
                     .world_size = plan.ranks()});
  }
  InsightEngine engine(cores);
  for (uint16_t i = 0; i < plan.pp * 3; ++i) engine.NameModel(InsightModel(i), model.ModelName(i));
  EngineSink engine_sink(engine, core_of);
  BaselineSink baselines(plan);
  class Both final : public FleetSink {
   public:
    Both(FleetSink& first, FleetSink& second) : first_(first), second_(second) {}
    void Take(std::span<const FleetEvent> events) override {
      first_.Take(events);
      second_.Take(events);
    }

   private:
    FleetSink& first_;
    FleetSink& second_;
  } both(engine_sink, baselines);
  while (model.RunStep(both)) {
  }
  model.Finish(both);
  std::vector<CoreCondition> conditions;
  for (const uint32_t rank : rank_of) conditions.push_back(model.Condition(rank));
  const uint64_t before_ns = ThreadNs();
  const InsightReport report = engine.Judge(conditions);
  const uint64_t judging_ns = ThreadNs() - before_ns;

  const Golden golden = PlannedGolden(plan);
  AccuracyResult result;
  result.score = ScoreAnswers(golden, AnswersOf(report, rank_of));
  for (size_t i = 0; i < kBaselines; ++i)
    result.baselines[i] = ScoreBaseline(golden, baselines.Named(static_cast<Baseline>(i)));
  result.cores = report.cores;
  result.cores_judged = report.cores_judged;
  result.bytes_per_core = engine.memory_bytes() / std::max<size_t>(1, cores.size());
  result.events = engine_sink.events();
  result.engine_s = static_cast<double>(engine_sink.spent_ns() + judging_ns) / 1e9;
  if (!has_text) return result;
  for (const Verdict& verdict : report.verdicts)
    result.text +=
        fmt::format("  {}\n    {}\n", VerdictText(verdict, cores), RuledOutText(verdict));
  for (const Refusal& refusal : report.refusals)
    result.text += fmt::format("  {}\n", RefusalText(refusal, cores));
  result.text += fmt::format("  {}\n", ReportText(report, cores));
  return result;
}

std::vector<AccuracyResult> RunTrials(const std::vector<AccuracyTrial>& trials,
                                      const AccuracyOptions& options, AccuracyProgress& progress) {
  std::vector<AccuracyResult> results(trials.size());
  Mutex mutex;
  size_t next = 0;
  size_t done = 0;
  const auto work = [&] {
    while (true) {
      size_t number = 0;
      {
        MutexLock lock(mutex);
        if (next == trials.size()) return;
        number = next++;
      }
      results[number] = RunTrial(trials[number], options.has_text);
      MutexLock lock(mutex);
      progress.Update(++done, trials.size(), trials[number].row);
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t i = 1; i < options.jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return results;
}

}  // namespace neurontrace
