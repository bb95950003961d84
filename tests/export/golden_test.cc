// SPDX-License-Identifier: Apache-2.0
// Goal: what the formats look like changes only on purpose. A small capture with one of everything,
// exported, against the files in tests/golden (tests/golden/README.md).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/e2e/pftrace_check/checker.h"
#include "tests/export/golden_fixture.h"
#include "tests/export/xspace_reader.h"

namespace neurontrace {
namespace {

using GoldenTest = GoldenFixture;

std::string StatsText(const std::map<std::string, std::string>& stats) {
  std::string text;
  for (const auto& [name, value] : stats) text += fmt::format(" {}={}", name, value);
  return text + "\n";
}

// For people; lines by name, events in the order of the file.
std::string SpaceText(const XSpace& space) {
  std::string text;
  for (const std::string& name : space.hostnames) text += fmt::format("hostname {}\n", name);
  for (const std::string& warning : space.warnings) text += fmt::format("warning {}\n", warning);
  for (const XPlane& plane : space.planes) {
    text += fmt::format("plane {} {}{}", plane.id, plane.name, StatsText(plane.stats));
    for (const auto& [name, events] : plane.lines) {
      text += fmt::format("  line {}\n", name);
      for (const XEvent& event : events) {
        text += fmt::format("    {} +{} {}{}", event.start_ns, event.duration_ns, event.name,
                            StatsText(event.stats));
      }
    }
  }
  return text;
}

TEST_F(GoldenTest, PerfettoTrace) {
  const std::string trace = Export("perfetto");
  const TraceReport found = ExpectSound(trace);
  const auto report = pftrace_check::Check(trace);
  EXPECT_EQ(found.summary.packets, report.packets);
  EXPECT_EQ(found.summary.slices, report.slices);
  EXPECT_EQ(found.summary.instants, report.instants);
  EXPECT_EQ(found.summary.arguments, report.arguments);
  EXPECT_EQ(found.summary.flow_arrows, report.flow_arrows);
  EXPECT_EQ(found.summary.lost_events, 12u);
  Compare("export.pftrace.txt", pftrace_check::ToText(report));
  Compare("export.pftrace.json", pftrace_check::ToJson(report));
}

TEST_F(GoldenTest, Json) { Compare("export.json", Export("json")); }

TEST_F(GoldenTest, ChromeJson) { Compare("export.trace.json", Export("chrome-json")); }

TEST_F(GoldenTest, XSpace) {
  StringFiles files;
  const auto summary = ExportCapture(source_, **FindExportFormat("xspace"), {}, files, {});
  ASSERT_TRUE(summary.ok()) << summary.status();
  std::string text;
  for (const auto& [name, bytes] : files.files) text += name + "\n" + SpaceText(ReadSpace(bytes));
  Compare("export.xspace.txt", text);
}

TEST_F(GoldenTest, SummaryText) {
  Certificate certificate;
  certificate.verdict = "incomplete: 12 of 42 events lost";
  certificate.account = {.expected = 42, .captured = 30, .stored = 30, .lost = 12};
  Compare("export.summary.txt", Export("summary-text", {.certificate = &certificate}));
}

TEST_F(GoldenTest, SummaryJson) { Compare("export.summary.json", Export("summary-json")); }

}  // namespace
}  // namespace neurontrace
