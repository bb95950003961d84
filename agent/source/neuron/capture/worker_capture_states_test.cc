// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/worker_capture_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace neurontrace {
namespace {

// The phases that follow `from` by any number of events, `from` included.
std::set<WorkerPhase> Reachable(WorkerPhase from) {
  std::set<WorkerPhase> reached = {from};
  std::vector<WorkerPhase> open = {from};
  while (!open.empty()) {
    const WorkerPhase phase = open.back();
    open.pop_back();
    for (const WorkerTransition& row : WorkerTransitions()) {
      if (row.from == phase && reached.insert(row.to).second) open.push_back(row.to);
    }
  }
  return reached;
}

TEST(WorkerStatesTest, EveryPhaseIsReachedFromTheFirst) {
  EXPECT_EQ(Reachable(WorkerPhase::kJoined).size(), kWorkerPhases);
}

TEST(WorkerStatesTest, EveryPhaseButTheLastEndsAndTheLastStays) {
  for (size_t i = 0; i < kWorkerPhases; ++i) {
    const auto phase = static_cast<WorkerPhase>(i);
    const WorkerTransition end = FindTransition(phase, WorkerEvent::kEnd);
    EXPECT_EQ(end.to, WorkerPhase::kEnded) << ToString(phase);
    EXPECT_EQ(end.action,
              phase == WorkerPhase::kEnded ? WorkerAction::kNone : WorkerAction::kEndStreams);
  }
  for (size_t i = 0; i < kWorkerEvents; ++i) {
    const auto event = static_cast<WorkerEvent>(i);
    EXPECT_EQ(FindTransition(WorkerPhase::kEnded, event).to, WorkerPhase::kEnded);
    EXPECT_EQ(FindTransition(WorkerPhase::kEnded, event).action, WorkerAction::kNone);
  }
}

TEST(WorkerStatesTest, EveryEventAndEveryActionHasARow) {
  std::set<WorkerEvent> events;
  std::set<WorkerAction> actions;
  for (const WorkerTransition& row : WorkerTransitions()) {
    events.insert(row.event);
    actions.insert(row.action);
  }
  EXPECT_EQ(events.size(), kWorkerEvents);
  EXPECT_EQ(actions.size(), kWorkerActions);
}

TEST(WorkerStatesTest, EveryRowIsFoundAndNoOtherPairDoesAnything) {
  size_t found = 0;
  for (size_t i = 0; i < kWorkerPhases; ++i) {
    for (size_t j = 0; j < kWorkerEvents; ++j) {
      const auto phase = static_cast<WorkerPhase>(i);
      const auto event = static_cast<WorkerEvent>(j);
      const WorkerTransition got = FindTransition(phase, event);
      EXPECT_EQ(got.from, phase);
      EXPECT_EQ(got.event, event);
      const auto rows = WorkerTransitions();
      const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& each) {
        return each.from == phase && each.event == event;
      });
      if (row == rows.end()) {
        EXPECT_EQ(got.to, phase);
        EXPECT_EQ(got.action, WorkerAction::kNone);
        continue;
      }
      ++found;
      EXPECT_EQ(got.to, row->to);
      EXPECT_EQ(got.action, row->action);
      EXPECT_TRUE(got.to != phase || got.action != WorkerAction::kNone) << "an idle row";
    }
  }
  EXPECT_EQ(found, WorkerTransitions().size());
}

TEST(WorkerStatesTest, StoppingNeverReturnsToRecording) {
  const std::set<WorkerPhase> after = Reachable(WorkerPhase::kStopping);
  EXPECT_THAT(after, ::testing::ElementsAre(WorkerPhase::kStopping, WorkerPhase::kStopSent,
                                            WorkerPhase::kEnded));
}

TEST(WorkerStatesTest, SuspendedCanRecordAgain) {
  for (const WorkerPhase phase :
       {WorkerPhase::kSuspending, WorkerPhase::kSuspended, WorkerPhase::kSuspendStopSent}) {
    EXPECT_TRUE(Reachable(phase).contains(WorkerPhase::kOrdered)) << ToString(phase);
  }
}

TEST(WorkerStatesTest, ANewConnectionLeavesNoOrderWithTheTap) {
  for (size_t i = 0; i < kWorkerPhases; ++i) {
    const auto phase = static_cast<WorkerPhase>(i);
    const WorkerPhase next = FindTransition(phase, WorkerEvent::kReconnect).to;
    EXPECT_FALSE(HasOrder(next)) << ToString(phase);
    EXPECT_NE(next, WorkerPhase::kStopSent);
  }
}

TEST(WorkerStatesTest, EachPhaseIsOfOneKind) {
  for (size_t i = 0; i < kWorkerPhases; ++i) {
    const auto phase = static_cast<WorkerPhase>(i);
    EXPECT_EQ(
        IsSuspended(phase) + IsStopping(phase) + IsActive(phase) + (phase == WorkerPhase::kEnded),
        1)
        << ToString(phase);
    EXPECT_FALSE(ToString(phase).empty());
  }
}

TEST(WorkerStatesTest, ATraceThatWasSeenIsNeverUnseenAgain) {
  for (size_t i = 0; i < kTraceStates; ++i) {
    for (size_t j = 0; j < kTraceSigns; ++j) {
      const auto from = static_cast<TraceState>(i);
      const auto sign = static_cast<TraceSign>(j);
      const TraceState to = NextTraceState(from, sign);
      if (sign == TraceSign::kRuns) {
        EXPECT_EQ(to, TraceState::kRunning);
      }
      if (sign == TraceSign::kStops) {
        EXPECT_NE(to, TraceState::kRunning);
      }
      if (from != TraceState::kUnseen) {
        EXPECT_NE(to, TraceState::kUnseen);
      }
    }
  }
  EXPECT_EQ(NextTraceState(TraceState::kUnseen, TraceSign::kStops), TraceState::kUnseen);
  EXPECT_EQ(NextTraceState(TraceState::kUnseen, TraceSign::kHasRun), TraceState::kStopped);
  EXPECT_EQ(NextTraceState(TraceState::kRunning, TraceSign::kHasRun), TraceState::kRunning);
}

}  // namespace
}  // namespace neurontrace
