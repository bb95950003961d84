// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/on_demand/kineto_states.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace neurontrace {
namespace {

constexpr int kStates = static_cast<int>(KinetoState::kNotListening) + 1;
constexpr int kEvents = static_cast<int>(KinetoEvent::kDeadlinePassed) + 1;

TEST(KinetoStates, NoRowContradictsAnother) {
  std::set<std::pair<KinetoState, KinetoEvent>> rows;
  for (const KinetoTransition& row : KinetoTransitions()) {
    EXPECT_TRUE(rows.emplace(row.from, row.event).second);
    EXPECT_NE(row.from, row.to);
  }
}

TEST(KinetoStates, FinalStatesChangeOnlyForAFile) {
  for (int state = 0; state < kStates; ++state) {
    const auto from = static_cast<KinetoState>(state);
    if (!IsFinal(ReportedState(from))) continue;
    for (int event = 0; event < kEvents; ++event) {
      const KinetoState to = NextState(from, static_cast<KinetoEvent>(event));
      EXPECT_TRUE(to == from || to == KinetoState::kFileSeen);
    }
  }
}

// Whatever has happened: after the moment and the deadline, nothing is waited for.
TEST(KinetoStates, EveryStateIsFinalAfterTheDeadline) {
  for (int state = 0; state < kStates; ++state) {
    KinetoState now = NextState(static_cast<KinetoState>(state), KinetoEvent::kMomentPassed);
    now = NextState(now, KinetoEvent::kDeadlinePassed);
    EXPECT_TRUE(IsFinal(ReportedState(now))) << state;
  }
}

TEST(KinetoStates, AFileCountsInEveryState) {
  for (int state = 0; state < kStates; ++state) {
    EXPECT_EQ(NextState(static_cast<KinetoState>(state), KinetoEvent::kFileAppeared),
              KinetoState::kFileSeen);
  }
}

}  // namespace
}  // namespace neurontrace
