// SPDX-License-Identifier: Apache-2.0
// The goal: what agents tell is bounded, whatever happens to them.
#include "agent/triggers/trigger_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "agent/triggers/trigger_test_support.h"
#include "lib/base/clock.h"
#include "lib/trace/trigger_limits.h"
#include "lib/trace/trigger_rule.h"

namespace neurontrace {
namespace {

using ::testing::SizeIs;

TEST(TriggerReports, LimitsReportsPerSecond) {
  FakeClock clock;
  FakeTriggerSink sink;
  TriggerReports reports(clock, sink);
  for (uint32_t pid = 0; pid < limits::kTriggerReportsKeptMax; ++pid) {
    EXPECT_EQ(reports.Report({.rule = "r", .worker = {.pid = pid}}),
              TriggerReports::Outcome::kReported);
  }
  EXPECT_EQ(reports.Report({.rule = "q"}), TriggerReports::Outcome::kSuppressed);
  clock.AdvanceNs(limits::kTriggerReportIntervalNs - 1);
  EXPECT_EQ(reports.Report({.rule = "r"}), TriggerReports::Outcome::kSuppressed);
  clock.AdvanceNs(1);
  EXPECT_EQ(reports.Report({.rule = "r"}), TriggerReports::Outcome::kReported);
  EXPECT_THAT(sink.told, SizeIs(limits::kTriggerReportsKeptMax + 1));
}

TEST(TriggerReports, RetriesUndeliveredReports) {
  FakeClock clock;
  FakeTriggerSink sink;
  sink.connected = false;
  TriggerReports reports(clock, sink);
  EXPECT_EQ(reports.Report({.rule = "r"}), TriggerReports::Outcome::kUndelivered);
  sink.connected = true;
  TriggerFired long_winded{.rule = "r"};
  long_winded.cause.assign(5'000, 'x');
  EXPECT_EQ(reports.Report(long_winded), TriggerReports::Outcome::kReported);
  ASSERT_THAT(sink.told, SizeIs(1));
  EXPECT_EQ(sink.told[0].cause.size(), limits::kDetailBytesMax);
  EXPECT_EQ(reports.counters().undelivered, 1u);
}

}  // namespace
}  // namespace neurontrace
