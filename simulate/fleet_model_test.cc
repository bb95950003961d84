// SPDX-License-Identifier: Apache-2.0
#include "simulate/fleet_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct FleetRun {
  std::vector<FleetEvent> events;
  std::vector<uint64_t> waits;
  uint64_t end_ns = 0;
};

class KeepingSink final : public FleetSink {
 public:
  explicit KeepingSink(std::vector<FleetEvent>& events) : events_(events) {}
  void Take(std::span<const FleetEvent> events) override {
    events_.insert(events_.end(), events.begin(), events.end());
  }

 private:
  std::vector<FleetEvent>& events_;
};

FleetPlan SmallPlan() {
  FleetPlan plan;
  plan.dp = 4;
  plan.pp = 2;
  plan.tp = 4;
  plan.steps = 8;
  plan.processes_per_instance = 2;
  return plan;
}

FleetRun RunFleet(const FleetPlan& plan, FleetOrder order = FleetOrder::kByRank) {
  EXPECT_TRUE(CheckFleetPlan(plan).ok()) << CheckFleetPlan(plan);
  FleetRun run;
  FleetModel model(plan, order);
  KeepingSink sink(run.events);
  while (model.RunStep(sink)) {
  }
  model.Finish(sink);
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) run.waits.push_back(model.wait_ns(rank));
  run.end_ns = model.true_ns();
  return run;
}

bool Meets(const FleetEvent& event) { return event.op != FleetOp::kNone; }

// The parts of each operation: by type, group, operation and execution.
using OperationKey = std::tuple<FleetEventType, uint64_t, FleetOp, uint64_t>;
std::map<OperationKey, std::vector<FleetEvent>> Operations(const FleetRun& run) {
  std::map<OperationKey, std::vector<FleetEvent>> operations;
  for (const FleetEvent& event : run.events) {
    if (Meets(event))
      operations[{event.type, event.group, event.op, event.exec_id}].push_back(event);
  }
  return operations;
}

double DeviceNs(const FleetRun& run, uint32_t rank) {
  double sum = 0;
  for (const FleetEvent& event : run.events) {
    if (event.rank != rank) continue;
    const auto length = static_cast<double>(event.true_end_ns - event.true_start_ns);
    if (event.type == FleetEventType::kRun) sum += length;
    if (Meets(event) && event.type != FleetEventType::kHostBarrier) sum -= length;
  }
  return sum;
}

TEST(FleetModelTest, NobodyLeavesBeforeTheLastArrivesAndAllLeaveTogether) {
  FleetPlan plan = SmallPlan();
  plan.noise_low = plan.noise_high = 0.1;
  const auto operations = Operations(RunFleet(plan));
  std::set<FleetOp> seen;
  for (const auto& [key, parts] : operations) {
    seen.insert(std::get<FleetOp>(key));
    uint64_t last_ns = 0;
    for (const FleetEvent& part : parts) last_ns = std::max(last_ns, part.true_start_ns);
    ASSERT_GE(parts.size(), 2u);
    for (const FleetEvent& part : parts) {
      EXPECT_GT(part.true_end_ns, last_ns);
      EXPECT_EQ(part.true_end_ns, parts.front().true_end_ns);
    }
  }
  EXPECT_EQ(seen.size(), 4u) << "tensor, pipeline, data and world";
}

TEST(FleetModelTest, WaitsAddUpToThoseInTheEvents) {
  const FleetPlan plan = SmallPlan();
  const FleetRun run = RunFleet(plan);
  std::vector<uint64_t> waits(plan.ranks());
  for (const auto& [key, parts] : Operations(run)) {
    uint64_t last_ns = 0;
    for (const FleetEvent& part : parts) last_ns = std::max(last_ns, part.true_start_ns);
    for (const FleetEvent& part : parts) waits[part.rank] += last_ns - part.true_start_ns;
  }
  EXPECT_EQ(waits, run.waits);
}

TEST(FleetModelTest, EqualSeedsGiveEqualEventsAndOthersDoNot) {
  FleetPlan plan = SmallPlan();
  const FleetRun first = RunFleet(plan);
  const FleetRun again = RunFleet(plan);
  ASSERT_EQ(first.events.size(), again.events.size());
  for (size_t i = 0; i < first.events.size(); ++i) {
    ASSERT_EQ(first.events[i].start_ns, again.events[i].start_ns);
    ASSERT_EQ(first.events[i].end_ns, again.events[i].end_ns);
  }
  plan.seed = 2;
  EXPECT_NE(RunFleet(plan).end_ns, first.end_ns);
}

TEST(FleetModelTest, ByTimeHasTheSameEventsInTheOrderOfTheirEndsWithinAStep) {
  const FleetRun by_rank = RunFleet(SmallPlan());
  const FleetRun by_time = RunFleet(SmallPlan(), FleetOrder::kByTime);
  ASSERT_EQ(by_time.events.size(), by_rank.events.size());
  const size_t step = by_time.events.size() / SmallPlan().steps;
  for (size_t i = 1; i < step; ++i)
    ASSERT_LE(by_time.events[i - 1].true_end_ns, by_time.events[i].true_end_ns);
}

TEST(FleetModelTest, ASlowCoreMakesOthersWaitAndNobodyElseSlow) {
  FleetPlan plan = SmallPlan();
  const FleetRun without = RunFleet(plan);
  plan.faults = {{VerdictKind::kSlowCore, 0.5, 5}};
  const FleetRun with = RunFleet(plan);
  EXPECT_GT(with.end_ns, without.end_ns);
  EXPECT_GT(DeviceNs(with, 5), 1.45 * DeviceNs(without, 5));
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    if (rank == 5) continue;
    EXPECT_EQ(DeviceNs(with, rank), DeviceNs(without, rank)) << "a fault changes no draw";
    EXPECT_GT(with.waits[rank], without.waits[rank]);
  }
  EXPECT_LT(with.waits[5], without.waits[5]);
}

TEST(FleetModelTest, FaultsHoldInTheirStepsOnly) {
  FleetPlan plan = SmallPlan();
  const FleetRun without = RunFleet(plan);
  plan.faults = {{VerdictKind::kSlowCore, 1.0, 5, 0.5, 0.75}};
  const FleetRun with = RunFleet(plan);
  const auto run_lengths = [](const FleetRun& run) {
    std::map<uint64_t, uint64_t> lengths;  // by exec_id; of the prepare-free device work of rank 5
    for (const FleetEvent& event : run.events) {
      if (event.rank == 5 && event.type == FleetEventType::kRun)
        lengths[event.exec_id] = event.true_end_ns - event.true_start_ns;
    }
    return lengths;
  };
  const auto before = run_lengths(without);
  std::set<uint64_t> slow_steps;
  for (const auto& [exec_id, length] : run_lengths(with)) {
    if (length > before.at(exec_id) * 3 / 2)
      slow_steps.insert((exec_id - 1) / plan.executions_per_step());
  }
  EXPECT_THAT(slow_steps, ElementsAre(4, 5));
}

TEST(FleetModelTest, AClockStepsOnItsInstanceOnly) {
  FleetPlan plan = SmallPlan();
  plan.clock_offset_max_ns = 0;
  plan.clock_drift_max_ppm = 0;
  plan.clocks = {{.instance = 2, .step_ns = 7'000'000, .step_at = 0.5}};
  const FleetRun run = RunFleet(plan);
  std::set<uint32_t> stepped;
  for (const FleetEvent& event : run.events) {
    const auto error = static_cast<int64_t>(event.end_ns - event.true_end_ns);
    ASSERT_TRUE(error == 0 || error == 7'000'000) << error;
    if (error != 0) stepped.insert(plan.instance_of(event.rank));
  }
  EXPECT_THAT(stepped, ElementsAre(2));
}

TEST(FleetModelTest, SpansAcrossASetBackClockCannotBePaired) {
  FleetEvent event;
  event.start_ns = 10;
  event.end_ns = 9;
  EXPECT_FALSE(ToInsight(event, 0).has_value());
  event.end_ns = 10;
  EXPECT_TRUE(ToInsight(event, 0).has_value());
}

TEST(FleetModelTest, AHangBeforeAnOperationLeavesTheOthersOpen) {
  FleetPlan plan = SmallPlan();
  plan.faults = {{VerdictKind::kHangNotEntered, 0, 9, 0.5}};
  const FleetRun run = RunFleet(plan);
  std::set<uint32_t> open;
  uint64_t last_of_hung_ns = 0;
  for (const FleetEvent& event : run.events) {
    if (event.is_open && Meets(event)) open.insert(event.rank);
    if (event.rank == 9) {
      EXPECT_FALSE(event.is_open);
      last_of_hung_ns = std::max(last_of_hung_ns, event.true_end_ns);
    }
    if (event.is_open) EXPECT_EQ(event.true_end_ns, run.end_ns);
  }
  EXPECT_EQ(open.size(), plan.ranks() - 1);
  EXPECT_GE(run.end_ns, last_of_hung_ns + plan.hang_ns);
}

TEST(FleetModelTest, InsideAHangAllMembersHaveEntered) {
  FleetPlan plan = SmallPlan();
  plan.faults = {{VerdictKind::kHangInside, 0, 6, 0.5}};
  const FleetRun run = RunFleet(plan);
  std::vector<uint32_t> inside;
  for (const FleetEvent& event : run.events) {
    if (event.is_open && event.op == FleetOp::kData) {
      EXPECT_EQ(event.group, DataGroup(plan, 1, 2));
      inside.push_back(event.rank);
    }
  }
  std::sort(inside.begin(), inside.end());
  EXPECT_EQ(inside, GuiltyRanks(plan, plan.faults[0]));
}

TEST(FleetModelTest, ADeadWorkerEndsAndTheOthersLive) {
  FleetPlan plan = SmallPlan();
  plan.faults = {{VerdictKind::kDeadWorker, 0, 3, 0.5}};
  FleetModel model(plan);
  FleetRun run;
  KeepingSink sink(run.events);
  while (model.RunStep(sink)) {
  }
  model.Finish(sink);
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    const CoreCondition condition = model.Condition(rank);
    EXPECT_EQ(condition.has_ended, plan.process_of(rank) == 3);
    if (!condition.has_ended)
      EXPECT_EQ(condition.alive_at_ns, model.HostTime(rank, model.true_ns()));
  }
}

TEST(FleetModelTest, HolesTakeEventsAwayAndCountThem) {
  FleetPlan plan = SmallPlan();
  const FleetRun whole = RunFleet(plan);
  plan.holes = {{HoleKind::kLosses, {3}, 0.25, 0.5}, {HoleKind::kMissing, {7}}};
  FleetModel model(plan);
  FleetRun run;
  KeepingSink sink(run.events);
  while (model.RunStep(sink)) {
  }
  model.Finish(sink);
  uint64_t of_missing = 0;
  for (const FleetEvent& event : whole.events) of_missing += event.rank == 7 ? 1 : 0;
  EXPECT_TRUE(model.is_missing(7));
  EXPECT_GT(model.dropped(), 0u);
  EXPECT_EQ(model.Condition(3).lost_events, model.dropped());
  EXPECT_LT(model.Condition(3).loss_begin_ns, model.Condition(3).loss_end_ns);
  EXPECT_EQ(model.Condition(4).lost_events, 0u);
  EXPECT_EQ(run.events.size() + model.dropped() + of_missing, whole.events.size());
}

TEST(FleetModelTest, ALateAgentIsNotKnownToBeAlive) {
  FleetPlan plan = SmallPlan();
  plan.holes = {{HoleKind::kLateAgent, {8, 9}, 0.5, 1}};
  FleetModel model(plan);
  FleetRun run;
  KeepingSink sink(run.events);
  while (model.RunStep(sink)) {
  }
  model.Finish(sink);
  EXPECT_LT(model.Condition(8).alive_at_ns + plan.step_ns, model.Condition(10).alive_at_ns);
}

TEST(FleetPlanTest, ParsesFaultsHolesAndClocks) {
  const auto fault = ParsePlannedFault("slow-host@3:20+25-75");
  ASSERT_TRUE(fault.ok()) << fault.status();
  EXPECT_EQ(fault->kind, VerdictKind::kSlowHost);
  EXPECT_EQ(fault->target, 3u);
  EXPECT_DOUBLE_EQ(fault->magnitude, 0.2);
  EXPECT_DOUBLE_EQ(fault->begin, 0.25);
  EXPECT_DOUBLE_EQ(fault->end, 0.75);
  const auto hole = ParsePlannedHole("losses@4-6+0-50");
  ASSERT_TRUE(hole.ok()) << hole.status();
  EXPECT_THAT(hole->ranks, ElementsAre(4, 5, 6));
  const auto clock = ParsePlannedClock("3:250,15,-40000@50");
  ASSERT_TRUE(clock.ok()) << clock.status();
  EXPECT_EQ(clock->step_ns, -40'000'000);
}

TEST(FleetPlanTest, RefusesWhatIsNoFaultHoleOrClock) {
  for (const char* text : {"", "slow", "slow-core@", "slow-core@x", "slow-core@1:", "slow-core@-1",
                           "slow-core@1:nan", "slow-core@1+5", "slow-core@1:5+a-b"})
    EXPECT_FALSE(ParsePlannedFault(text).ok()) << text;
  for (const char* text : {"", "losses", "losses@", "losses@5-4", "losses@1-2-3", "losses@1-99999"})
    EXPECT_FALSE(ParsePlannedHole(text).ok()) << text;
  for (const char* text : {"", "1", "1:2", "1:2,3,4", "1:2,3,4@x", "1:inf,3"})
    EXPECT_FALSE(ParsePlannedClock(text).ok()) << text;
}

TEST(FleetPlanTest, RefusesPlansOutOfRange) {
  FleetPlan plan = SmallPlan();
  plan.dp = 10'000;
  EXPECT_FALSE(CheckFleetPlan(plan).ok());
  plan = SmallPlan();
  plan.faults = {{VerdictKind::kSlowCore, 0.5, plan.ranks()}};
  EXPECT_FALSE(CheckFleetPlan(plan).ok());
  plan = SmallPlan();
  plan.faults = {{VerdictKind::kSlowCore, 0.5, 0, 0.5, 0.5}};
  EXPECT_FALSE(CheckFleetPlan(plan).ok());
  plan = SmallPlan();
  plan.stage_weights = {1.0};
  EXPECT_FALSE(CheckFleetPlan(plan).ok());
  plan = SmallPlan();
  plan.holes = {{HoleKind::kLosses, {plan.ranks()}}};
  EXPECT_FALSE(CheckFleetPlan(plan).ok());
}

TEST(FleetPlanTest, NamesTheGuilty) {
  const FleetPlan plan = SmallPlan();
  EXPECT_THAT(GuiltyRanks(plan, {VerdictKind::kSlowProcess, 0.5, 2}), ElementsAre(8, 9, 10, 11));
  EXPECT_EQ(GuiltyRanks(plan, {VerdictKind::kSlowHost, 0.5, 1}).size(), 8u);
  EXPECT_EQ(GuiltyRanks(plan, {VerdictKind::kUnevenRole, 0.5, 1}).size(), 16u);
  EXPECT_THAT(GuiltyRanks(plan, {VerdictKind::kUnevenData, 0.5, 0}), IsEmpty());
}

}  // namespace
}  // namespace neurontrace
