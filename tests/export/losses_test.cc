// SPDX-License-Identifier: Apache-2.0
// Goal: every format that shows losses at their times shows the same ones of a part of a capture:
// those of the part, and those whose time is unknown. Method: a window of a capture in memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/export/rows/loss_instants.h"
#include "tests/e2e/pftrace_check/checker.h"
#include "tests/export/export_fixture.h"
#include "tests/export/xspace_reader.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// Turns what an exporter receives into the losses that it has to show.
class LossProbe : public Exporter {
 public:
  explicit LossProbe(std::vector<LossInstant>& losses) : losses_(losses) {}
  absl::Status Begin(const TimelineHeader& header) override {
    losses_ = TraceLosses(header);
    return absl::OkStatus();
  }
  absl::Status Write(const TimelineBatch&) override { return absl::OkStatus(); }
  absl::Status Finish(ExportSummary&) override { return absl::OkStatus(); }
  uint64_t bytes_written() const override { return 0; }

 private:
  std::vector<LossInstant>& losses_;
};

class LossesTest : public ExportFixture {
 protected:
  static constexpr uint64_t kWindow = kBase + 1'000'000;

  LossesTest() {
    const uint32_t stream = AddCore("i-a", 1, 0, 4);
    script_.Span("span", kBase, kBase + 10, 1);
    script_.Span("span", kWindow + 10, kWindow + 20, 2);
    Close(stream);
    const auto gap = [](uint64_t at_ns, uint64_t events) {
      return Loss{
          LossPlace::kRuntimeRing, LossReason::kOverwritten, events, false, at_ns, at_ns + 5, ""};
    };
    source_.stream(stream).gaps = {gap(kBase + 5, 7), gap(kWindow + 500, 11),
                                   gap(kWindow + 1'000, 13)};
    // Nothing of it is known but how much there was.
    source_.stream(AddCore("i-a", 1, 1, 5)).losses = {
        {LossPlace::kSpool, LossReason::kFull, 17, false, 0, 0, ""}};
    request_.filter.window_start_ns = kWindow;
    request_.filter.window_end_ns = kWindow + 1'000;
  }

  ExportRequest request_;
};

TEST_F(LossesTest, WindowShowsItsLossesAndTimelessOnes) {
  static std::vector<LossInstant>* losses = nullptr;
  std::vector<LossInstant> found;
  losses = &found;
  const ExportFormat format{
      "probe", "probe",
      [](const ExportRequest&, OutputFiles&) -> absl::StatusOr<std::unique_ptr<Exporter>> {
        return std::make_unique<LossProbe>(*losses);
      }};
  StringFiles files;
  const auto export_it = [&] {
    EXPECT_TRUE(ExportCapture(source_, format, request_, files, {}).ok());
    std::vector<std::string> told;
    for (const LossInstant& loss : found) {
      told.push_back(fmt::format("{} of {} at {}", loss.loss.events, loss.stream,
                                 static_cast<int64_t>(loss.at_ns - kWindow)));
    }
    return told;
  };
  EXPECT_THAT(export_it(), ElementsAre("17 of 1 at 0", "11 of 0 at 500"));
  request_.filter = {};
  EXPECT_THAT(export_it(), ElementsAre("17 of 1 at -1000000", "7 of 0 at -999995", "11 of 0 at 500",
                                       "13 of 0 at 1000"));
  // Nothing was recorded there, or later.
  request_.filter.window_end_ns = kBase - 1'000;
  EXPECT_THAT(export_it(), ElementsAre("17 of 1 at -1001001"));
}

// Suspensions are shown at their times, under a name of their own, and are in no sum.
TEST_F(LossesTest, SuspensionsAreShownAmongThem) {
  const CaptureId other = *CaptureId::Parse("01ARZ3NDEKTSV4RRFFQ69G5FAV");
  source_.stream(0).suspensions = {{other, kWindow + 600, kWindow + 650},
                                   {{}, kWindow + 5'000, kWindow + 6'000}};
  const std::string detail = "capture " + other.ToString() + " had the worker";
  size_t shown = 0;
  const auto report = pftrace_check::Check(Export("perfetto", request_));
  for (const auto& track : report.tracks) {
    for (const auto& instant : track.instants) {
      if (instant.name != "not recorded") continue;
      ++shown;
      EXPECT_EQ(instant.start_ns, kWindow + 600);
      EXPECT_THAT(instant.arguments, Contains(Pair("events", "0")));
      EXPECT_THAT(instant.arguments, Contains(Pair("gap_ns", "50")));
      EXPECT_THAT(instant.arguments, Contains(Pair("detail", detail)));
    }
  }
  EXPECT_EQ(shown, 1u);
  EXPECT_THAT(Export("chrome-json", request_),
              ::testing::AllOf(HasSubstr("\"not recorded\""), HasSubstr("\"gap_ns\":50"),
                               HasSubstr(detail), ::testing::Not(HasSubstr("\"gap_ns\":1000"))));
  const XSpace space = ReadSpace(Export("xspace", request_));
  shown = 0;
  for (const XPlane& plane : space.planes) {
    const auto losses = plane.lines.find("losses");
    if (losses == plane.lines.end()) continue;
    for (const XEvent& event : losses->second) {
      if (event.name != "not recorded") continue;
      ++shown;
      EXPECT_EQ(event.stats.at("detail"), detail);
    }
  }
  EXPECT_EQ(shown, 1u);
  request_.filter = {};
  EXPECT_THAT(Export("summary-json", request_),
              ::testing::AllOf(HasSubstr("\"reason\":\"refused\",\"events\":0"),
                               HasSubstr("another capture had the worker")));
}

TEST_F(LossesTest, PerfettoTraceShowsLosses) {
  const auto report = pftrace_check::Check(Export("perfetto", request_));
  std::vector<std::string> told;
  for (const auto& track : report.tracks) {
    if (!track.name.ends_with("-losses")) continue;
    for (const auto& instant : track.instants) {
      for (const auto& [key, value] : instant.arguments) {
        if (key == "events") told.push_back(value);
      }
    }
  }
  EXPECT_THAT(told, UnorderedElementsAre("11", "17"));
}

TEST_F(LossesTest, TraceEventJsonShowsLosses) {
  const std::string text = Export("chrome-json", request_);
  std::vector<std::string> told;
  constexpr std::string_view kEvents = "\"events\":";
  for (size_t at = text.find(kEvents); at != std::string::npos; at = text.find(kEvents, at + 1)) {
    told.push_back(text.substr(at + kEvents.size(), 2));
  }
  EXPECT_THAT(told, UnorderedElementsAre("11", "17"));
}

TEST_F(LossesTest, XSpaceShowsLosses) {
  const XSpace space = ReadSpace(Export("xspace", request_));
  std::vector<std::string> told;
  for (const XPlane& plane : space.planes) {
    const auto losses = plane.lines.find("losses");
    if (losses == plane.lines.end()) continue;
    for (const XEvent& event : losses->second) told.push_back(event.stats.at("events"));
  }
  EXPECT_THAT(told, UnorderedElementsAre("11", "17"));
}

}  // namespace
}  // namespace neurontrace
