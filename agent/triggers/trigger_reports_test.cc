// SPDX-License-Identifier: Apache-2.0
// The goal: what agents tell is bounded, whatever happens to them.
#include "agent/triggers/trigger_reports.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/base/clock.h"
#include "lib/trace/trigger_limits.h"
#include "lib/trace/trigger_rule.h"

namespace neurontrace {
namespace {

TEST(TriggerReports, TellsNoMoreWithinASecondThanItsLimit) {
  FakeClock clock;
  size_t sent = 0;
  TriggerReports reports(clock, [&sent](const TriggerFired&) { return ++sent > 0; });
  for (uint32_t pid = 0; pid < limits::kTriggerReportsKeptMax; ++pid) {
    EXPECT_EQ(reports.Tell({.rule = "r", .worker = {.pid = pid}}), TriggerReports::Outcome::kTold);
  }
  EXPECT_EQ(reports.Tell({.rule = "q"}), TriggerReports::Outcome::kSuppressed);
  clock.AdvanceNs(limits::kTriggerReportIntervalNs - 1);
  EXPECT_EQ(reports.Tell({.rule = "r"}), TriggerReports::Outcome::kSuppressed);
  clock.AdvanceNs(1);
  EXPECT_EQ(reports.Tell({.rule = "r"}), TriggerReports::Outcome::kTold);
  EXPECT_EQ(sent, limits::kTriggerReportsKeptMax + 1);
}

TEST(TriggerReports, TriesAgainWhenNobodyHeard) {
  FakeClock clock;
  bool heard = false;
  std::string cause;
  TriggerReports reports(clock, [&](const TriggerFired& fired) {
    cause = fired.cause;
    return heard;
  });
  EXPECT_EQ(reports.Tell({.rule = "r"}), TriggerReports::Outcome::kUnheard);
  heard = true;
  TriggerFired long_winded{.rule = "r"};
  long_winded.cause.assign(5'000, 'x');
  EXPECT_EQ(reports.Tell(long_winded), TriggerReports::Outcome::kTold);
  EXPECT_EQ(cause.size(), limits::kDetailBytesMax);
  EXPECT_EQ(reports.counters().unheard, 1u);
}

}  // namespace
}  // namespace neurontrace
