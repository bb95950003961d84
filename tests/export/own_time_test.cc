// SPDX-License-Identifier: Apache-2.0
// Goal: a file whose times count from an unknown moment is shown with its order and lengths where a
// viewer looks, never as if it were aligned, and in no window. Method: two such files of two
// instances beside a worker, in every format.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/export/events/event_lines.h"
#include "tests/e2e/pftrace_check/checker.h"
#include "tests/export/export_fixture.h"
#include "tests/export/xspace_reader.h"

namespace neurontrace {
namespace {

using pftrace_check::Check;
using pftrace_check::Report;
using pftrace_check::Slice;
using pftrace_check::Track;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr uint64_t kOwnNs = 1'000'000;  // of the first step in its file

class OwnTimeTest : public ExportFixture {
 protected:
  void AddOwnFile(const std::string& instance) {
    const uint32_t file = AddFile(instance, "host.trace.json");
    for (uint64_t step = 0; step < 3; ++step) {
      script_.Complete("", kOwnNs + step * 500'000, 0, 1,
                       {{"name", fmt::format("train_step {}", step), KeyScope::kTop},
                        {"pid", uint64_t{701}, KeyScope::kTop},
                        {"dur_ns", uint64_t{400'000}, KeyScope::kTop},
                        {"step_num", std::to_string(step)}});
    }
    Close(file);
    source_.stream(file).clock_domain = ClockDomain::kOwn;
  }
  void AddAll() {
    Close(AddCore("i-a", 1, 0, 0), "span");
    AddOwnFile("i-a");
    AddOwnFile("i-b");
  }
  static size_t Count(std::string_view text, std::string_view what) {
    size_t count = 0;
    for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) {
      ++count;
    }
    return count;
  }
};

TEST_F(OwnTimeTest, PerfettoShowsOwnTimeAtCaptureBegin) {
  AddAll();
  const std::string trace = Export("perfetto");
  ExpectSound(trace);
  const Report report = Check(trace);
  EXPECT_THAT(report.errors, IsEmpty());
  size_t rows = 0;
  for (const Track& track : report.tracks) {
    const bool is_file = track.process.find("host.trace.json") != std::string::npos;
    // Steps are made of the same events, which have their own times already.
    if (!is_file || track.slices.empty() || track.name.ends_with("(derived)")) continue;
    ++rows;
    EXPECT_THAT(track.process, HasSubstr("(own time, not aligned)"));
    ASSERT_THAT(track.slices, SizeIs(3));
    for (uint64_t step = 0; step < 3; ++step) {
      const Slice& slice = track.slices[step];
      EXPECT_EQ(slice.start_ns, kBase + step * 500'000);
      EXPECT_EQ(slice.end_ns - slice.start_ns, 400'000u);
      EXPECT_THAT(slice.arguments,
                  Contains(Pair("own_time_ns", fmt::format("{}", kOwnNs + step * 500'000))));
    }
  }
  EXPECT_EQ(rows, 2u);
  EXPECT_THAT(report.attributes,
              Contains(Pair("io.neurontrace.warning.0",
                            HasSubstr("2 framework files have times that count from an unknown "
                                      "moment (i-a host.trace.json, i-b host.trace.json)"))));
  EXPECT_THAT(report.attributes,
              Contains(Pair("io.neurontrace.clock.words",
                            HasSubstr("the times of 2 framework files start at an unknown "
                                      "moment"))));
}

TEST_F(OwnTimeTest, RecordedTimesAreThoseOfTheFile) {
  AddAll();
  ExportRequest request;
  request.raw_clocks = true;
  const std::string json = Export("json", request);
  EXPECT_THAT(json, HasSubstr("\"timestamp\":1000000,"));
  EXPECT_THAT(json, HasSubstr("\"timestamp\":2000000,"));
  EXPECT_THAT(json, HasSubstr(fmt::format("\"timestamp\":{}", kBase)));
  std::string lines;
  const EventLinesRequest events{.filter = {}, .certificate_json = "", .raw_clocks = true};
  const auto total = WriteEventLines(
      source_, events,
      [&lines](std::string_view bytes) {
        lines += bytes;
        return absl::OkStatus();
      },
      [](const EventLinesTotal&) { return true; });
  ASSERT_TRUE(total.ok()) << total.status();
  EXPECT_EQ(Count(lines, "\"own_time\":true"), 6u);
  EXPECT_THAT(lines, Not(HasSubstr("reference_ns")));
  EXPECT_THAT(total->warnings, Contains(HasSubstr("they keep these times")));
}

TEST_F(OwnTimeTest, EveryFormatShowsFileTime) {
  AddAll();
  const std::string json = Export("json");
  EXPECT_EQ(Count(json, "\"own_time_ns\":1500000"), 2u);
  EXPECT_THAT(json, HasSubstr(fmt::format("\"timestamp\":{},", kBase + 500'000)));
  const std::string chrome = Export("chrome-json");
  EXPECT_EQ(Count(chrome, "\"own_time_ns\":2000000"), 2u);
  EXPECT_EQ(Count(chrome, "(own time, not aligned)"), 2u);
  StringFiles files;
  ASSERT_TRUE(ExportCapture(source_, **FindExportFormat("xspace"), {}, files, {}).ok());
  size_t planes = 0;
  for (const auto& [name, bytes] : files.files) {
    for (const XPlane& plane : ReadSpace(bytes).planes) {
      if (plane.name.find("(own time, not aligned)") == std::string::npos) continue;
      ++planes;
      ASSERT_THAT(plane.lines, SizeIs(1));
      const auto& events = plane.lines.begin()->second;
      ASSERT_THAT(events, SizeIs(3));
      EXPECT_EQ(events[1].start_ns - events[0].start_ns, 500'000);
      EXPECT_EQ(events[1].duration_ns, 400'000);
      EXPECT_THAT(events[1].stats, Contains(Pair("own_time_ns", "1500000")));
    }
  }
  EXPECT_EQ(planes, 2u);
}

TEST_F(OwnTimeTest, NoWindowShowsIt) {
  AddAll();
  ExportRequest request;
  // Also one that holds the times of the file, as it has them or as they would be placed.
  request.filter.window_end_ns = kBase + 10'000'000;
  const std::string json = Export("json", request);
  EXPECT_THAT(json, Not(HasSubstr("train_step")));
  EXPECT_THAT(json, HasSubstr("\"name\":\"span\""));
  EXPECT_THAT(summary_.warnings, Contains(HasSubstr("a time window excludes their events")));
}

TEST_F(OwnTimeTest, ItMakesNoSummaryLongerAndNothingBeginEarlier) {
  AddAll();
  const std::string json = Export("summary-json");
  EXPECT_THAT(json, HasSubstr(fmt::format("\"begin_ns\":\"{}\"", kBase)));
  EXPECT_THAT(json, HasSubstr(fmt::format("\"end_ns\":\"{}\"", kBase + 10)));
}

// Nothing tells when it was: it begins when the capture was started, by the capture's id.
TEST_F(OwnTimeTest, AloneItIsShownFromTheCapturesStartOn) {
  source_.description().id = *CaptureId::Parse("01KD0000000000000000000000");
  AddOwnFile("i-a");
  const uint64_t started_ns = source_.description().id.CreatedRealtimeNs();
  EXPECT_GT(started_ns, kBase);
  const Report report = Check(Export("perfetto"));
  EXPECT_THAT(report.errors, IsEmpty());
  for (const Track& track : report.tracks) {
    if (!track.slices.empty()) EXPECT_EQ(track.slices.front().start_ns, started_ns);
  }
  EXPECT_THAT(report.attributes,
              Contains(Pair("io.neurontrace.clock.words",
                            testing::StartsWith(
                                "the times of 1 framework file start at an unknown moment"))));
}

}  // namespace
}  // namespace neurontrace
