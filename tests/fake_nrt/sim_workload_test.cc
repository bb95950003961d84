// SPDX-License-Identifier: Apache-2.0
// The workload's schedule and events obey what a real job's would: checked on plans, without
// running them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/temporary_directory.h"
#include "tests/fake_nrt/execution_planner.h"
#include "tests/fake_nrt/sim_schedule.h"
#include "tests/fake_nrt/step_meeting.h"
#include "tests/fake_nrt/stop_signal.h"
#include "tests/fake_nrt/workload_forms.h"
#include "tests/fake_nrt/workload_mix.h"

namespace neurontrace {
namespace {

constexpr int64_t kStart = 1755115507000000000;
constexpr int64_t kMs = 1'000'000;

ScheduleOptions Job(uint32_t world_size, int64_t period_ns, uint32_t collectives) {
  return {.seed = 7,
          .world_size = world_size,
          .start_at_ns = kStart,
          .period_ns = period_ns,
          .collectives = collectives};
}

std::vector<BarrierTimes> Barriers(const RankStep& step) {
  std::vector<BarrierTimes> all = {step.host_barrier, step.device_barrier};
  all.insert(all.end(), step.collectives.begin(), step.collectives.end());
  return all;
}

TEST(ScheduleTest, NobodyLeavesABarrierBeforeTheLastOneEntered) {
  for (const int64_t straggler : {-1, 5}) {
    ScheduleOptions options = Job(24, 10 * kMs, 12);
    options.straggler_rank = straggler;
    options.straggler_extra_ns = 2 * kMs;
    const Schedule schedule(options);
    for (uint64_t step = 0; step < 20; ++step) {
      std::vector<std::vector<BarrierTimes>> ranks;
      for (uint32_t rank = 0; rank < 24; ++rank) {
        ranks.push_back(Barriers(schedule.Rank(step, rank)));
      }
      for (size_t b = 0; b < ranks[0].size(); ++b) {
        int64_t last_enter = INT64_MIN;
        int64_t first_exit = INT64_MAX;
        uint32_t last = 0;
        for (uint32_t rank = 0; rank < 24; ++rank) {
          if (ranks[rank][b].enter_ns > last_enter) last = rank;
          last_enter = std::max(last_enter, ranks[rank][b].enter_ns);
          first_exit = std::min(first_exit, ranks[rank][b].exit_ns);
        }
        ASSERT_LT(last_enter, first_exit) << "step " << step << " barrier " << b;
        if (straggler >= 0) {
          ASSERT_EQ(last, straggler) << "step " << step << " barrier " << b;
        }
      }
    }
  }
}

TEST(ScheduleTest, NobodyLeavesABarrierBeforeADelayedRankEntered) {
  ScheduleOptions options = Job(8, 50 * kMs, 3);
  options.host_work_ns = 4 * kMs;
  const Schedule schedule(options);
  int64_t begin_ns = 0;
  for (uint64_t step = 0; step < 20; ++step) {
    const int64_t latest_ns = static_cast<int64_t>(step % 3) * 70 * kMs;
    std::vector<std::vector<BarrierTimes>> ranks;
    int64_t stop_ns = 0;
    for (uint32_t rank = 0; rank < 8; ++rank) {
      const StepDelay delay = {
          .begin_ns = begin_ns, .own_ns = rank == 3 ? latest_ns : 0, .job_ns = latest_ns};
      const RankStep times = Delayed(schedule.Rank(step, rank), delay);
      ASSERT_GE(times.execute_ns - times.begin_ns, options.host_work_ns);
      ASSERT_LE(times.host_barrier.enter_ns, times.device_start_ns);
      stop_ns = std::max(stop_ns, times.device_stop_ns);
      ranks.push_back(Barriers(times));
    }
    for (size_t b = 0; b < ranks[0].size(); ++b) {
      int64_t last_enter = INT64_MIN;
      int64_t first_exit = INT64_MAX;
      for (const std::vector<BarrierTimes>& rank : ranks) {
        last_enter = std::max(last_enter, rank[b].enter_ns);
        first_exit = std::min(first_exit, rank[b].exit_ns);
      }
      ASSERT_LT(last_enter, first_exit) << "step " << step << " barrier " << b;
    }
    begin_ns += latest_ns;
    ASSERT_LT(stop_ns, schedule.StepBegin(step + 1) + begin_ns) << "the next step begins later";
  }
}

TEST(ScheduleTest, TheStragglerIsLateFromAMomentOn) {
  ScheduleOptions options = Job(8, 10 * kMs, 2);
  options.straggler_rank = 5;
  options.straggler_extra_ns = 2 * kMs;
  const Schedule always(options);
  options.straggler_after_ns = 10 * always.period_ns();
  const Schedule later(options);
  EXPECT_EQ(later.period_ns(), always.period_ns()) << "steps begin at the same times";
  for (uint64_t step = 0; step < 20; ++step) {
    const int64_t late_ns =
        always.Rank(step, 5).host_barrier.enter_ns - later.Rank(step, 5).host_barrier.enter_ns;
    EXPECT_EQ(late_ns, step < 10 ? 2 * kMs : 0) << step;
  }
}

TEST(ScheduleTest, TwoProcessesComeToTheSameTimesInWhateverOrder) {
  const Schedule a(Job(8, 20 * kMs, 6));
  const Schedule b(Job(8, 20 * kMs, 6));
  const RankStep later = a.Rank(30, 3);
  for (uint64_t step = 0; step < 30; ++step) b.Rank(step, 7);
  const RankStep same = b.Rank(30, 3);
  EXPECT_EQ(later.device_stop_ns, same.device_stop_ns);
  EXPECT_EQ(later.collectives.back().exit_ns, same.collectives.back().exit_ns);
}

TEST(ScheduleTest, FindsTheFirstStepFromAMoment) {
  const Schedule schedule(Job(1, 10 * kMs, 0));
  EXPECT_EQ(schedule.FirstStepFrom(kStart - 1), 0u);
  EXPECT_EQ(schedule.FirstStepFrom(kStart), 0u);
  EXPECT_EQ(schedule.FirstStepFrom(kStart + 1), 1u);
  EXPECT_EQ(schedule.FirstStepFrom(kStart + 20 * kMs), 2u);
}

TEST(HostClockTest, StampsWithOffsetAndDrift) {
  const HostClock clock = {.offset_ns = -500, .drift_ppm = 20, .origin_ns = kStart};
  EXPECT_EQ(clock.Stamp(kStart), kStart - 500);
  EXPECT_EQ(clock.Stamp(kStart + 1'000'000'000), kStart + 1'000'000'000 - 500 + 20'000);
}

TEST(HostClockTest, IsSetAndSlewed) {
  const auto clock = HostClock::Parse(
      "origin_ns=1000000000 raw_drift_ppm=-10 step=2000000000:50 step=5000000000:-50 "
      "slew=3000000000:4000000000:300 hidden_slew=6000000000:7000000000:-500");
  ASSERT_TRUE(clock);
  constexpr int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(clock->Stamp(2 * kSecond - 1), 2 * kSecond - 1);
  EXPECT_EQ(clock->Stamp(2 * kSecond), 2 * kSecond + 50);
  EXPECT_EQ(clock->Stamp(7 * kSecond / 2), 7 * kSecond / 2 + 50 + 150'000);
  EXPECT_EQ(clock->Stamp(5 * kSecond), 5 * kSecond + 300'000);
  EXPECT_EQ(clock->GainedNs(8 * kSecond), 300'000 - 500'000);
  EXPECT_EQ(clock->RawGainedNs(2 * kSecond), -10'000);
  EXPECT_NEAR(clock->ShownPpm(7 * kSecond / 2), 310, 0.01);
  EXPECT_NEAR(clock->ShownPpm(13 * kSecond / 2), 10, 0.01);
  EXPECT_EQ(clock->NextStepAfter(0), 2 * kSecond);
  EXPECT_EQ(clock->NextStepAfter(2 * kSecond), 5 * kSecond);
  EXPECT_EQ(clock->NextStepAfter(5 * kSecond), std::nullopt);
}

TEST(HostClockTest, RejectsUnknownSettings) {
  EXPECT_TRUE(HostClock::Parse(""));
  for (const char* text : {"offset", "offset_ns=", "offset_ns=1s", "step=5", "slew=1:2", "x=1"}) {
    EXPECT_FALSE(HostClock::Parse(text)) << text;
  }
}

struct PlanCase {
  const char* mix;
  int64_t period_ns;
  uint32_t lnc;
  bool after_sync;
};

class PlannerTest : public ::testing::TestWithParam<PlanCase> {
 protected:
  PlannerTest()
      : mix_(*WorkloadMix::Named(GetParam().mix)),
        schedule_(Job(4, GetParam().period_ns, mix_.collectives)),
        planner_(schedule_, forms_,
                 {.mix = mix_,
                  .rank = 2,
                  .nc_idx = 2,
                  .physical_per_logical = GetParam().lnc,
                  .first_physical_core = 4,
                  .hardware_after_sync = GetParam().after_sync}) {}

  static bool IsHardware(const std::string& type) {
    return type == "nc_exec_running" || type == "cc_running" || type == "cc_exec_barrier" ||
           type == "nc_model_switch" || type == "hw_notify";
  }

  WorkloadForms forms_;
  WorkloadMix mix_;
  Schedule schedule_;
  ExecutionPlanner planner_;
};

TEST_P(PlannerTest, StaysInsideItsStepInOrder) {
  for (uint64_t step = 0; step < 60; ++step) {
    const auto events = planner_.Plan(step);
    for (size_t i = 0; i < events.size(); ++i) {
      ASSERT_GT(events[i].emit_ns, schedule_.StepBegin(step));
      ASSERT_LT(events[i].emit_ns, schedule_.StepBegin(step + 1)) << events[i].form.event_type;
      if (i > 0) {
        ASSERT_GE(events[i].emit_ns, events[i - 1].emit_ns);
      }
    }
  }
}

TEST_P(PlannerTest, ALaterPlanOfAStepKeepsWhatCameBeforeTheDelay) {
  for (uint64_t step = 0; step < 60; ++step) {
    const int64_t enter_ns = schedule_.Rank(step, 2).host_barrier.enter_ns;
    const auto events = planner_.Plan(step);
    const std::vector<PlannedEvent> before(events.begin(), events.end());
    const uint64_t execution = planner_.exec_id();
    const auto later = planner_.Replan(step, {.job_ns = 80 * kMs});
    ASSERT_EQ(planner_.exec_id(), execution);
    ASSERT_EQ(later.size(), before.size());
    size_t same = 0;
    for (; before[same].emit_ns <= enter_ns; ++same) {
      EXPECT_EQ(later[same].emit_ns, before[same].emit_ns);
      EXPECT_EQ(later[same].tracking_id, before[same].tracking_id);
      EXPECT_EQ(later[same].timestamp_ns, before[same].timestamp_ns);
      EXPECT_EQ(later[same].values, before[same].values);
    }
    EXPECT_STREQ(before[same - 1].form.event_type, "enc_barrier");
    ASSERT_GT(later[same].emit_ns, enter_ns + 79 * kMs);
  }
}

TEST_P(PlannerTest, EverySpanIsStartedAndStoppedOnceAndHostSpansNest) {
  std::set<uint64_t> tracking_ids;
  for (uint64_t step = 3; step < 8; ++step) {  // none of the occasional events
    std::vector<uint64_t> open;
    std::map<uint64_t, int64_t> started;
    std::map<std::string, uint32_t> spans;
    const auto events = planner_.Plan(step);
    EXPECT_EQ(events.size(), mix_.EventsPerExecution(GetParam().lnc));
    for (const PlannedEvent& event : events) {
      const std::string type = event.form.event_type;
      const std::string phase = event.form.phase;
      if (phase == "start") {
        ASSERT_TRUE(tracking_ids.insert(event.tracking_id).second);
        started[event.tracking_id] = event.true_ns;
        ++spans[type];
        // The host's barrier reaches over its neighbours, as it waits for other ranks.
        if (!IsHardware(type)) open.push_back(event.tracking_id);
      } else if (phase == "stop") {
        ASSERT_TRUE(started.contains(event.tracking_id)) << type;
        ASSERT_GT(event.true_ns, started[event.tracking_id]) << type;
        started.erase(event.tracking_id);
        if (!IsHardware(type)) {
          ASSERT_FALSE(open.empty());
          ASSERT_EQ(open.back(), event.tracking_id) << type << " overlaps another";
          open.pop_back();
        }
      }
    }
    EXPECT_TRUE(started.empty());
    EXPECT_EQ(spans["nc_exec_running"], GetParam().lnc);
    EXPECT_EQ(spans["cc_running"], mix_.collectives);
    EXPECT_EQ(spans["nrt_tensor_free"], mix_.tensor_free);
    EXPECT_EQ(spans["dmem_buf_copyin"], mix_.copyin);
    EXPECT_EQ(spans["nrt_dma_mem_alloc"], mix_.dma_mem_alloc);
  }
}

TEST_P(PlannerTest, AdjustsHardwareEventsByTheSyncPointOfTheExecution) {
  std::set<uint64_t> cores;
  for (uint64_t step = 3; step < 40; ++step) {
    const auto events = planner_.Plan(step);
    const auto sync = std::find_if(events.begin(), events.end(), [](const PlannedEvent& e) {
      return std::string(e.form.event_type) == "timestamp_sync_point";
    });
    ASSERT_NE(sync, events.end());
    const auto nc = static_cast<int64_t>(sync->values[1]);
    const auto cpu = static_cast<int64_t>(sync->values[2]);
    EXPECT_GT(sync->timestamp_ns, cpu);
    for (const PlannedEvent& event : events) {
      if (GetParam().after_sync && IsHardware(event.form.event_type)) {
        ASSERT_GE(event.emit_ns, sync->emit_ns);
      }
      if (event.form.event_type == std::string("nc_exec_running")) {
        if (event.form.phase == std::string("start")) cores.insert(event.values[0]);
      }
      if (event.form.form != forms_.collective.start.form) continue;
      ASSERT_EQ(event.timestamp_ns, cpu + (static_cast<int64_t>(event.values[3]) - nc));
      // The device latched before the host read its clock: adjusted times are late, never early but
      // for the drift of the device.
      ASSERT_GT(event.timestamp_ns, event.true_ns - 5000);
      ASSERT_LT(event.timestamp_ns, event.true_ns + 100'000);
    }
  }
  EXPECT_EQ(cores.size(), GetParam().lnc);
}

INSTANTIATE_TEST_SUITE_P(Mixes, PlannerTest,
                         ::testing::Values(PlanCase{"eager", 11 * kMs, 2, false},
                                           PlanCase{"eager", 1 * kMs, 1, false},
                                           PlanCase{"graph", 100 * kMs, 2, true},
                                           PlanCase{"graph", kMs / 10, 2, false},
                                           PlanCase{"bare", 10 * kMs, 1, true}));

TEST(StepMeetingTest, ReportsHowLateTheLastOneIs) {
  const TemporaryDirectory directory;
  const StopSignal stop;
  StepMeeting here(directory.path() + "/meeting", 3);
  StepMeeting there(directory.path() + "/meeting", 3);
  ASSERT_TRUE(here.ok() && there.ok());
  for (uint64_t step = 0; step < 5; ++step) {
    const auto late_ns = static_cast<int64_t>(step) * kMs;
    here.Arrive(step, 0, 0);
    there.Arrive(step, 2, late_ns);
    here.Arrive(step, 1, kMs);
    EXPECT_EQ(here.WaitForAll(step, stop), std::max(late_ns, kMs));
    EXPECT_EQ(there.WaitForAll(step, stop), std::max(late_ns, kMs));
  }
}

TEST(StepMeetingTest, WaitsForTheMissingUntilItIsStopped) {
  const TemporaryDirectory directory;
  StopSignal stop;
  StepMeeting meeting(directory.path() + "/meeting", 2);
  ASSERT_TRUE(meeting.ok());
  meeting.Arrive(0, 0, 0);
  stop.Raise();
  EXPECT_EQ(meeting.WaitForAll(0, stop), std::nullopt);
  EXPECT_FALSE(StepMeeting("/", 2).ok());
}

TEST(WorkloadMixTest, EagerHasTheSpansOfThePublishedCapture) {
  // 4 ranks and 5 executions had 9,634 spans.
  const uint32_t spans = (WorkloadMix::Named("eager")->EventsPerExecution(2) + 1) / 2;
  EXPECT_NEAR(spans, 9634 / 20, 2);
}

}  // namespace
}  // namespace neurontrace
