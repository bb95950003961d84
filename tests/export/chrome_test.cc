// SPDX-License-Identifier: Apache-2.0
// Goal: trace-event JSON that viewers load and draw as it was: rows that nest, arrows that touch
// their spans, no digit lost, whatever the capture holds.
// Method: captures in memory; the text is compared, and read by protobuf's JSON reader for its
// form.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "aggregator/export/chrome/chrome_exporter.h"
#include "aggregator/export/rows/lanes.h"
#include "tests/export/export_fixture.h"

namespace neurontrace {
namespace {

using google::protobuf::Struct;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ChromeTest : public ExportFixture {
 protected:
  std::string ExportChrome(ExportRequest request = {}) {
    std::string text = Export("chrome-json", std::move(request));
    const auto status = google::protobuf::util::JsonStringToMessage(text, &parsed_);
    EXPECT_TRUE(status.ok()) << status.ToString() << "\n" << text.substr(0, 2'000);
    return text;
  }
  std::vector<const Struct*> Events(std::string_view phase) {
    std::vector<const Struct*> found;
    for (const auto& event : parsed_.fields().at("traceEvents").list_value().values()) {
      if (Text(event.struct_value(), "ph") == phase) found.push_back(&event.struct_value());
    }
    return found;
  }
  static std::string Text(const Struct& event, const std::string& key) {
    return event.fields().at(key).string_value();
  }
  static double Number(const Struct& event, const std::string& key) {
    return event.fields().at(key).number_value();
  }
  static EventScript::Attribute Top(const std::string& name, EventScript::Value value) {
    return {name, std::move(value), KeyScope::kTop};
  }
  Struct parsed_;
};

TEST_F(ChromeTest, AnnotationsHaveARowForEachThread) {
  AddAnnotations("i-a", 4711);
  const std::string text = ExportChrome();
  EXPECT_THAT(text, AllOf(HasSubstr("tid7-annotation"), HasSubstr("tid8-annotation")));
  bool has_range = false;
  for (const Struct* event : Events("X")) {
    if (Text(*event, "name") != "forward") continue;
    has_range = true;
    EXPECT_EQ(Text(*event, "cat"), "phase");
    EXPECT_EQ(Number(*event, "dur"), 0.05);
  }
  EXPECT_TRUE(has_range);
}

TEST_F(ChromeTest, WritesASpanWithTimesToTheNanosecond) {
  const uint32_t stream = AddCore("i-0f20", 1113579, 3, 35);
  script_.Span("nrt_execute", kBase + 1'001, kBase + 81'503, 1, 7, {{"size", uint64_t{5}}},
               {{"size", uint64_t{6}}});
  Close(stream);
  const std::string text = ExportChrome();
  EXPECT_THAT(text, HasSubstr(fmt::format("\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":{}",
                                          kBase + 1'000)));
  EXPECT_THAT(
      text,
      HasSubstr(R"({"ph":"X","name":"nrt_execute","cat":"neuron_rt","pid":1,"tid":2,"ts":0.001,)"
                R"("dur":80.502,"args":{"size":5,"stop_size":6}})"));
  EXPECT_THAT(text, HasSubstr(R"({"ph":"M","name":"process_name","pid":1,"tid":1,)"
                              R"("args":{"name":"i-0f20-pid1113579"}})"));
  EXPECT_THAT(text, HasSubstr(R"({"ph":"M","name":"thread_name","pid":1,"tid":2,)"
                              R"("args":{"name":"gid35-nc3-tid7-neuron_rt"}})"));
  EXPECT_THAT(text, AllOf(HasSubstr("process_sort_index"), HasSubstr("thread_sort_index")));
}

TEST_F(ChromeTest, OverlappingSpansUseNestedLanes) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  uint64_t id = 1;
  for (uint64_t start = 0; start < 200; start += 7) {
    script_.Span("span", kBase + start, kBase + start + 10 + start % 11, id++);
  }
  script_.Span("point", kBase + 300, kBase + 300, id++);
  Close(stream);
  ExportChrome();
  std::map<std::pair<double, double>, std::vector<std::pair<double, double>>> lanes;
  for (const Struct* span : Events("X")) {
    const double start = Number(*span, "ts") * 1'000;
    lanes[{Number(*span, "pid"), Number(*span, "tid")}].emplace_back(
        start, start + Number(*span, "dur") * 1'000);
  }
  EXPECT_GT(lanes.size(), 1u);
  size_t spans = 0;
  for (const auto& [lane, held] : lanes) {
    spans += held.size();
    for (const auto& a : held) {
      for (const auto& b : held) {
        const bool is_crossed =
            a.first < b.first && b.first < a.second - 0.5 && a.second < b.second - 0.5;
        EXPECT_FALSE(is_crossed) << a.first << " " << b.first;
      }
    }
  }
  EXPECT_EQ(spans, id - 1);
}

TEST_F(ChromeTest, MoreOverlapThanLanesBecomesAsynchronous) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  const uint64_t spans = Lanes::kLanesMax + 3;
  for (uint64_t i = 0; i < spans; ++i) {
    script_.Start("span", kBase + i, i + 1, 7);
  }
  for (uint64_t i = 0; i < spans; ++i) {
    script_.Stop("span", kBase + 10'000 + i, i + 1, 7);
  }
  Close(stream);
  ExportChrome();
  EXPECT_EQ(Events("X").size(), Lanes::kLanesMax);
  ASSERT_EQ(Events("b").size(), 3u);
  ASSERT_EQ(Events("e").size(), 3u);
  EXPECT_EQ(Number(*Events("b")[2], "id"), Number(*Events("e")[2], "id"));
  EXPECT_THAT(summary_.warnings, testing::Contains(HasSubstr("3 spans are shown as async")));
}

TEST_F(ChromeTest, LosesNoDigitAndSurvivesAnyText) {
  const uint32_t stream = AddCore("i-\"a\\", 1, 0, 0);
  script_.Span("quote\" \xff\xc3\xa9 \n", kBase, kBase + 1, 1, UINT64_MAX,
               {{"handle", uint64_t{UINT64_MAX}},
                {"exact", uint64_t{1} << 53},
                {"low", int64_t{INT64_MIN}},
                {"small", int64_t{-5}},
                {"open", std::string("no")},
                {"text", std::string("\x01\xf0\x9f\x94\xa5")}});
  Close(stream);
  EXPECT_THAT(ExportChrome(),
              AllOf(HasSubstr("\"handle\":\"18446744073709551615\""),
                    HasSubstr("\"exact\":9007199254740992"),
                    HasSubstr("\"low\":\"-9223372036854775808\""), HasSubstr("\"small\":-5"),
                    HasSubstr("\\u0001\xf0\x9f\x94\xa5"), HasSubstr("\xef\xbf\xbd\xc3\xa9")));
}

TEST_F(ChromeTest, TakesAttributesFromAStopInALaterChunk) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  script_.Start("nrt_load", kBase, 1, 7);
  script_.Start("open", kBase + 1, 2, 7);
  Close(stream);
  script_.Stop("nrt_load", kBase + 80, 1, 7, {{"model_id", uint64_t{4}}});
  script_.Stop("lost", kBase + 90, 3, 7);
  Close(stream);
  EXPECT_THAT(ExportChrome(), AllOf(HasSubstr("\"dur\":0.080,\"args\":{\"model_id\":4}}"),
                                    HasSubstr("\"args\":{\"open\":true}"),
                                    HasSubstr("\"args\":{\"start_lost\":true}")));
  EXPECT_EQ(Events("X").size(), 3u);
}

TEST_F(ChromeTest, ArrowsJoinWhatBelongsTogether) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  const EventScript::Attributes execution = {{"exec_id", uint64_t{9}}};
  script_.Span("kbl_exec_pre", kBase, kBase + 5, 1, 7, execution);
  script_.Span("nc_exec_running", kBase + 10, kBase + 20, 2, 7, execution);
  script_.Span("nc_exec_running", kBase + 30, kBase + 40, 3, 7, {{"exec_id", uint64_t{10}}});
  Close(stream);
  const uint32_t file = AddFile("i-a", "worker0.pt.trace.json");
  const auto pid = Top("pid", uint64_t{1});
  for (const uint64_t at_ns : {kBase, kBase + 6}) {
    script_.Complete("cpu_op", at_ns, 0, 5,
                     {pid, Top("name", std::string("op")), Top("dur_ns", uint64_t{5})});
  }
  script_.Add("ac2g", Phase::kFlowStart, kBase, 0, 5, {pid, Top("flow_id", uint64_t{3})});
  script_.Add("ac2g", Phase::kFlowEnd, kBase + 6, 0, 5, {pid, Top("flow_id", uint64_t{3})});
  Close(file);
  const std::string text = ExportChrome();
  auto starts = Events("s");
  // Operations may call the runtime: that arrow has a start where no call is here to end it.
  std::erase_if(starts, [](const auto* start) { return Text(*start, "cat") == "framework_call"; });
  const auto ends = Events("f");
  ASSERT_EQ(starts.size(), 2u) << text;
  ASSERT_EQ(ends.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const auto is_end = [&](const Struct* end) {
      return Text(*end, "cat") == Text(*starts[i], "cat") &&
             Text(*end, "name") == Text(*starts[i], "name") &&
             Number(*end, "id") == Number(*starts[i], "id") && Text(*end, "bp") == "e";
    };
    EXPECT_TRUE(is_end(ends[0]) || is_end(ends[1])) << i;
  }
  EXPECT_THAT(ExportChrome({.no_flows = true}), Not(HasSubstr("\"ph\":\"s\"")));
}

TEST_F(ChromeTest, CountersLossesAndTheVerdictAreThere) {
  AddHost("i-a");
  const uint32_t stream = AddCore("i-a", 1, 0, 5);
  source_.stream(stream).losses = {
      {LossPlace::kRuntimeRing, LossReason::kOverwritten, 17, false, kBase, kBase, ""}};
  Close(stream, "span");
  const uint32_t file = AddFile("i-a", "worker0.pt.trace.json");
  script_.Add("", Phase::kCounter, kBase, 0, 5,
              {Top("name", std::string("memory")), {"bytes", uint64_t{1}}, {"peak", 2.5}});
  Close(file);
  Certificate certificate;
  certificate.verdict = "the verdict";
  const std::string text =
      ExportChrome({.certificate = &certificate, .certificate_json = R"({"verdict":"x"})"});
  EXPECT_EQ(Events("C").size(), 6u);
  EXPECT_THAT(text, HasSubstr(R"("args":{"bytes":1,"peak":2.5})"));
  EXPECT_THAT(text, HasSubstr(R"("name":"host_cpu average util_percent")"));
  EXPECT_THAT(text, HasSubstr(R"("name":"events lost","cat":"neurontrace")"));
  EXPECT_THAT(text, HasSubstr(R"("s":"p","args":{"stream":"i-a pid 1 nc 0")"));
  EXPECT_THAT(text, HasSubstr(R"("s":"g","args":{"verdict":"the verdict")"));
  EXPECT_THAT(text, HasSubstr(R"({"message":"the verdict","category":"Capture"})"));
  EXPECT_THAT(text, HasSubstr(R"("certificate":{"verdict":"x"}}})"));
}

TEST(ChromeTextTest, WritesMicrosecondsExactly) {
  const std::pair<int64_t, const char*> cases[] = {{0, "0.000"},
                                                   {1, "0.001"},
                                                   {-1, "-0.001"},
                                                   {-1'500, "-1.500"},
                                                   {INT64_MAX, "9223372036854775.807"},
                                                   {INT64_MIN, "-9223372036854775.808"}};
  for (const auto& [ns, text] : cases) {
    std::string out;
    AppendMicroseconds(ns, out);
    EXPECT_EQ(out, text);
  }
}

}  // namespace
}  // namespace neurontrace
