// SPDX-License-Identifier: Apache-2.0
// Goal: XSpace files that TensorBoard's profile plugin finds and reads: the layout, planes and
// lines by process and row, times, stats and flows; bounded in memory and in size. Method: captures
// in memory, read back.
#include "aggregator/export/xspace/xspace_exporter.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/export/export_fixture.h"
#include "tests/export/xspace_reader.h"

namespace neurontrace {
namespace {

using ::testing::_;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class XSpaceTest : public ExportFixture {
 protected:
  // By the name of the file, without its folders.
  std::map<std::string, XSpace> ExportSpaces(XSpaceExporter::Options options) {
    static XSpaceExporter::Options* chosen = nullptr;
    chosen = &options;
    const ExportFormat format{
        "xspace", "xspace",
        [](const ExportRequest&, OutputFiles& files) -> absl::StatusOr<std::unique_ptr<Exporter>> {
          return std::make_unique<XSpaceExporter>(*chosen, files);
        },
        true};
    StringFiles files;
    auto summary = ExportCapture(source_, format, {}, files, {});
    EXPECT_TRUE(summary.ok()) << summary.status();
    summary_ = *std::move(summary);
    EXPECT_EQ(files.open_files, 0u);
    EXPECT_EQ(summary_.progress.bytes_written, files.bytes);
    std::map<std::string, XSpace> spaces;
    const std::string folder = "plugins/profile/2025_06_15_15_06_40/";
    for (const auto& [name, bytes] : files.files) {
      EXPECT_TRUE(name.starts_with(folder)) << name;
      spaces[name.substr(folder.size())] = ReadSpace(bytes);
    }
    return spaces;
  }
  std::map<std::string, XSpace> ExportSpaces() {
    return ExportSpaces({.grouping = *Grouping::Parse({}, {})});
  }
};

TEST_F(XSpaceTest, AFileAnInstanceAPlaneAProcessALineARow) {
  const uint32_t stream = AddCore("i-0a", 4711, 3, 35);
  script_.Span("nrt_execute", kBase + 100, kBase + 1'101, 1, 7, {{"size", uint64_t{5}}},
               {{"size", int64_t{-6}}});
  script_.Span("nc_exec_running", kBase + 200, kBase + 300, 2, 7, {{"ratio", 0.5}});
  Close(stream);
  Close(AddCore("i-0b", 1, 0, 36), "span");
  const auto spaces = ExportSpaces();
  ASSERT_EQ(spaces.size(), 2u);
  const XSpace& space = spaces.at("i-0a.xplane.pb");
  EXPECT_THAT(space.hostnames, ElementsAre("i-0a"));
  ASSERT_EQ(space.planes.size(), 2u);
  const XPlane& plane = space.planes[0];
  EXPECT_EQ(plane.name, "/device:CUSTOM:i-0a-pid4711");
  EXPECT_EQ(plane.id, 1);
  EXPECT_EQ(plane.stats.at("process_id"), "4711");
  ASSERT_EQ(plane.lines.size(), 2u);
  const XEvent& event = plane.lines.at("gid35-nc3-tid7-neuron_rt").at(0);
  const uint64_t origin_ns = std::stoull(space.planes[1].stats.at("profile_start_time"));
  EXPECT_EQ(origin_ns + static_cast<uint64_t>(event.start_ns), kBase + 100);
  EXPECT_EQ(event.duration_ns, 1'001);
  EXPECT_THAT(event.stats,
              ElementsAre(Pair("flow", _), Pair("size", "5"), Pair("stop_size", "-6")));
  EXPECT_EQ(plane.lines.at("gid35-nc3-tid7-neuron_hw").at(0).stats.at("ratio"), "0.5");
  EXPECT_EQ(space.planes[1].name, "Task Environment");
}

TEST_F(XSpaceTest, AnnotationsAreLinesOfTheirProcess) {
  AddAnnotations("i-a", 4711);
  const auto spaces = ExportSpaces();
  const XPlane& plane = spaces.at("i-a.xplane.pb").planes.at(0);
  EXPECT_EQ(plane.stats.at("process_id"), "4711");
  const auto& line = plane.lines.at("tid7-annotation");
  ASSERT_EQ(line.size(), 2u);
  EXPECT_EQ(line[0].name, "step 3");
  EXPECT_EQ(line[1].name, "forward");
  EXPECT_EQ(line[1].duration_ns, 50);
  EXPECT_EQ(line[1].stats.at("domain"), "train");
  EXPECT_EQ(plane.lines.at("tid8-annotation").at(0).name, "loss");
}

TEST_F(XSpaceTest, StopsOfLaterChunksOverlapsAndFlowsAreThere) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  script_.Span("kbl_exec_pre", kBase, kBase + 5, 1, 7, {{"exec_id", uint64_t{9}}});
  script_.Span("nc_exec_running", kBase + 10, kBase + 20, 2, 7, {{"exec_id", uint64_t{9}}});
  script_.Span("a", kBase + 100, kBase + 200, 3);
  script_.Span("b", kBase + 150, kBase + 250, 4);
  script_.Start("nrt_load", kBase + 300, 5, 7, {{"size", uint64_t{1}}});
  Close(stream);
  script_.Stop("nrt_load", kBase + 380, 5, 7, {{"size", uint64_t{2}}});
  Close(stream);
  const auto spaces = ExportSpaces();
  const XPlane& plane = spaces.at("i-a.xplane.pb").planes.at(0);
  ASSERT_EQ(plane.lines.count("gid0-nc0-tid7-neuron_rt (lane 2)"), 1u);
  const auto& runtime = plane.lines.at("gid0-nc0-tid7-neuron_rt");
  ASSERT_EQ(runtime.size(), 3u);
  const uint64_t out = std::stoull(runtime[0].stats.at("flow"));
  const uint64_t in = std::stoull(plane.lines.at("gid0-nc0-tid7-neuron_hw")[0].stats.at("flow"));
  EXPECT_EQ(out & 3, 2u);
  EXPECT_EQ(in & 3, 1u);
  EXPECT_EQ(out >> 2, in >> 2);
  EXPECT_EQ(runtime[2].stats.at("stop_size"), "2");
  EXPECT_EQ(runtime[2].duration_ns, 80);
}

TEST_F(XSpaceTest, ExportsCountersLossesAndUnusualTexts) {
  AddHost("i:a/..");
  const uint32_t stream = AddCore("i:a/..", 1, 0, 0);
  source_.stream(stream).losses = {
      {LossPlace::kRuntimeRing, LossReason::kOverwritten, 17, false, kBase, kBase, ""}};
  script_.Span("\xff", kBase, kBase + 5, 1, 7, {{"handle", UINT64_MAX}});
  Close(stream);
  const auto spaces = ExportSpaces();
  const XSpace& space = spaces.at("i_a_...xplane.pb");
  std::map<std::string, const XPlane*> planes;
  std::set<int64_t> ids;
  for (const XPlane& plane : space.planes) {
    planes[plane.name] = &plane;
    EXPECT_TRUE(ids.insert(plane.id).second);
  }
  const auto& counters = planes.at("/device:CUSTOM:i:a/.. host")->lines.at("_counters_");
  ASSERT_EQ(counters.size(), 5u);
  EXPECT_EQ(counters[0].name, "host_cpu 0");
  EXPECT_EQ(counters[0].stats.at("util_percent"), "12.5");
  // A series of several is a counter of its own: the viewer stacks what one event has.
  EXPECT_EQ(counters[2].name, "host_memory used_bytes");
  EXPECT_EQ(counters[2].stats.size(), 1u);
  EXPECT_EQ(counters[2].stats.at("used_bytes"), "1024");
  EXPECT_EQ(counters[3].name, "host_memory used_percent");
  EXPECT_EQ(counters[4].stats.at("total_bytes"), "2048");
  const XPlane& worker = *planes.at("/device:CUSTOM:i:a/..-pid1");
  EXPECT_EQ(worker.lines.at("losses").at(0).stats.at("events"), "17");
  const XEvent& event = worker.lines.at("gid0-nc0-tid7-neuron_rt").at(0);
  EXPECT_EQ(event.name, "\xef\xbf\xbd");
  EXPECT_EQ(event.stats.at("handle"), "18446744073709551615");
  EXPECT_THAT(space.warnings, Contains(HasSubstr("17 trace events of i:a/.. pid 1 nc 0")));
}

TEST_F(XSpaceTest, ASmallBufferMakesMorePlanesOfTheSameEvents) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  for (uint64_t i = 0; i < 2'000; ++i) {
    script_.Span("span", kBase + 10 * i, kBase + 10 * i + 5, i + 1, 7, {{"number", i}});
  }
  Close(stream);
  const auto spaces =
      ExportSpaces({.grouping = *Grouping::Parse({}, {}), .buffered_bytes_max = 20'000});
  size_t planes = 0;
  std::set<std::string> numbers;
  for (const XPlane& plane : spaces.at("i-a.xplane.pb").planes) {
    for (const auto& [name, events] : plane.lines) {
      ++planes;
      EXPECT_EQ(plane.id, 1);
      for (const XEvent& event : events) numbers.insert(event.stats.at("number"));
    }
  }
  EXPECT_GT(planes, 3u);
  EXPECT_LT(planes, 50u) << "each is written when the buffer is full";
  EXPECT_EQ(numbers.size(), 2'000u);
}

TEST_F(XSpaceTest, CountsAndNamesUnrepresentableEvents) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  for (uint64_t i = 0; i < 2'000; ++i) {
    script_.Span("span", kBase + 10 * i, kBase + 10 * i + 5, i + 1);
  }
  Close(stream);
  const auto spaces =
      ExportSpaces({.grouping = *Grouping::Parse({}, {}), .host_bytes_max = 10'000});
  const XSpace& space = spaces.at("i-a.xplane.pb");
  const size_t held = space.planes.at(0).lines.begin()->second.size();
  EXPECT_GT(held, 100u);
  EXPECT_LT(held, 2'000u);
  const std::string words = fmt::format("{} events of i-a from 2025-06-15 15:06:40.", 2'000 - held);
  EXPECT_THAT(summary_.warnings, Contains(HasSubstr(words)));
  EXPECT_THAT(space.warnings, Contains(HasSubstr(words)));
}

TEST_F(XSpaceTest, RejectsUnsupportedRequests) {
  EXPECT_THAT(ExportError("xspace", {.primary_group = {"lnc_idx"}}), HasSubstr("primary-group"));
  EXPECT_THAT(ExportError("xspace", {.compression = ExportCompression::kGzip}),
              HasSubstr("cannot be compressed"));
}

TEST(XSpaceNamesTest, AreFitForFiles) {
  EXPECT_EQ(XSpaceRunName(1'766'072'156'592'459'482), "2025_12_18_15_35_56");
  EXPECT_EQ(XSpaceHostName("i-0f20"), "i-0f20");
  EXPECT_EQ(XSpaceHostName("a:b/c d"), "a_b_c_d");
  EXPECT_EQ(XSpaceHostName(".."), "host_..");
  EXPECT_EQ(XSpaceHostName(""), "host_");
  EXPECT_EQ(XSpaceHostName(std::string(500, 'x')).size(), 128u);
}

// An offset in picoseconds reaches 106 days: a line is written in as many parts as its events need.
TEST_F(XSpaceTest, EventsOfOneLineStandAtTheirTimesHoweverFarApart) {
  constexpr uint64_t kDayNs = uint64_t{24} * 3'600 * 1'000'000'000;
  const uint32_t stream = AddCore("i-0a", 4711, 3, 35);
  for (const uint64_t day : {0, 100, 200, 400}) {
    script_.Span("span", kBase + day * kDayNs, kBase + day * kDayNs + 10, day + 1);
  }
  script_.Span("long", kBase + 500 * kDayNs, kBase + 700 * kDayNs, 9);
  Close(stream);
  const auto spaces = ExportSpaces();
  std::map<std::string, std::vector<int64_t>> days;  // by name of event
  std::string shortened;
  for (const auto& [line, events] : spaces.at("i-0a.xplane.pb").planes.at(0).lines) {
    for (const XEvent& event : events) {
      days[event.name].push_back(event.start_ns / static_cast<int64_t>(kDayNs));
      if (event.name == "long") shortened = event.stats.at("shortened_duration_ns");
    }
  }
  std::sort(days["span"].begin(), days["span"].end());
  EXPECT_THAT(days["span"], ElementsAre(0, 100, 200, 400));
  EXPECT_THAT(days["long"], ElementsAre(500));
  EXPECT_EQ(shortened, fmt::format("{}", 200 * kDayNs));
  EXPECT_THAT(summary_.warnings, Contains(HasSubstr("1 spans are longer than the 106 days")));
}

}  // namespace
}  // namespace neurontrace
