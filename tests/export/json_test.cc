// SPDX-License-Identifier: Apache-2.0
// Goal: the JSON has the vendor's keys, is JSON whatever the capture holds, and loses no digit.
// Method: captures in memory; the text is compared, and read by protobuf's JSON reader for its
// form.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "aggregator/export/json/json_text.h"
#include "tests/export/export_fixture.h"

namespace neurontrace {
namespace {

using google::protobuf::Struct;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class JsonTest : public ExportFixture {
 protected:
  // The text, which must be one JSON object.
  std::string ExportJson(ExportRequest request = {}) {
    std::string text = Export("json", std::move(request));
    const auto status = google::protobuf::util::JsonStringToMessage(text, &parsed_);
    EXPECT_TRUE(status.ok()) << status.ToString() << "\n" << text.substr(0, 2'000);
    return text;
  }
  const google::protobuf::ListValue& Events() {
    return parsed_.fields().at("trace_event").list_value();
  }
  Struct parsed_;
};

TEST_F(JsonTest, HasTheVendorsKeysWhateverThereIs) {
  ExportJson();
  for (const char* key : {"trace_event", "mem_usage", "cpu_util", "hbm_usage", "warnings",
                          "device_profile_list", "system_profile_metadata"}) {
    EXPECT_TRUE(parsed_.fields().contains(key)) << key;
  }
}

TEST_F(JsonTest, WritesASpanAsTheVendorDoes) {
  const uint32_t stream = AddCore("i-0f20", 1113579, 3, 35);
  script_.Start("nc_exec_running", kBase, 1, 7,
                {{"device_core_idx", uint64_t{4}},
                 {"exec_id", uint64_t{9}},
                 {"nc_timestamp_ns", uint64_t{1000}},
                 {"model_id", uint64_t{10001}},
                 {"model_name", std::string("llama")},
                 {"name", std::string("x")}},
                3377699720529031);
  script_.Stop("nc_exec_running", kBase + 80, 1, 7, {{"nc_timestamp_ns", uint64_t{1080}}});
  Close(stream);
  EXPECT_THAT(
      ExportJson(),
      HasSubstr(fmt::format(
          R"({{"name":"nc_exec_running","timestamp":{},"duration":80,"timestamp_unit":"ns",)"
          R"("instance_id":"i-0f20","process_id":"1113579","lnc_idx":3,"nc_idx":3,"worker_gid":35,)"
          R"("thread_id":7,"id":3377699720529031,"trace_event_source":"neuron_hw",)"
          R"("device_core_idx":4,"exec_id":9,"nc_start_timestamp_ns":1000,"model_id":10001,)"
          R"("data.name":"x","model_name":"llama","nc_stop_timestamp_ns":1080}})",
          kBase)));
}

TEST_F(JsonTest, AnnotationsHaveTheirOwnNamesCategoriesAndThreads) {
  AddAnnotations("i-a", 4711);
  const std::string text = ExportJson();
  EXPECT_THAT(text, HasSubstr(fmt::format(
                        R"({{"name":"forward","timestamp":{},"duration":50,"timestamp_unit":"ns",)"
                        R"("instance_id":"i-a","process_id":"4711","thread_id":7,)"
                        R"("trace_event_source":"annotation","category":"phase","domain":"train",)"
                        R"("payload":3}})",
                        kBase + 10)));
  EXPECT_THAT(text, HasSubstr(R"("name":"step 3")"));
  EXPECT_THAT(text, HasSubstr(R"("name":"loss")"));
}

TEST_F(JsonTest, LosesNoDigitAndSurvivesAnyText) {
  const uint32_t stream = AddCore("i-\"a\\", 1, 0, 0);
  script_.Span("quote\" \xff\xc3\xa9 \n", kBase, kBase + 1, 1, UINT64_MAX,
               {{"handle", uint64_t{UINT64_MAX}},
                {"low", int64_t{INT64_MIN}},
                {"ratio", 0.1},
                {"text", std::string("\x01\xf0\x9f\x94\xa5")}});
  Close(stream);
  const std::string text = ExportJson();
  EXPECT_THAT(text, AllOf(HasSubstr("\"handle\":18446744073709551615"),
                          HasSubstr("\"low\":-9223372036854775808"), HasSubstr("\"ratio\":0.1"),
                          HasSubstr("\"thread_id\":18446744073709551615"),
                          HasSubstr("\\u0001\xf0\x9f\x94\xa5"), HasSubstr("\xef\xbf\xbd\xc3\xa9")));
}

TEST_F(JsonTest, TakesAttributesFromAStopInALaterChunk) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  script_.Start("nrt_load", kBase, 1, 7, {{"size", uint64_t{5}}});
  script_.Start("open", kBase + 1, 2, 7);
  Close(stream);
  script_.Stop("nrt_load", kBase + 80, 1, 7, {{"model_id", uint64_t{4}}, {"size", uint64_t{6}}});
  script_.Stop("lost", kBase + 90, 3, 7);
  Close(stream);
  const std::string text = ExportJson();
  EXPECT_EQ(Events().values_size(), 3);
  EXPECT_THAT(text, HasSubstr("\"size\":5,\"model_id\":4,\"stop_size\":6}"));
  EXPECT_THAT(text, AllOf(HasSubstr("\"open\":true"), HasSubstr("\"start_lost\":true")));
}

TEST_F(JsonTest, FindsTheModelOfAnExecution) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  script_.Span("kbl_exec_pre", kBase, kBase + 5, 1, 7,
               {{"exec_id", uint64_t{9}}, {"model_name", std::string("llama")}});
  script_.Span("nc_exec_running", kBase + 10, kBase + 20, 2, 7,
               {{"exec_id", uint64_t{9}}, {"model_name", std::string()}});
  Close(stream);
  ExportJson();
  EXPECT_EQ(Events().values(1).struct_value().fields().at("model_name").string_value(), "llama");
}

TEST_F(JsonTest, TakesNoTextForTheNumberOfAnExecution) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  script_.Span("kbl_exec_pre", kBase, kBase + 5, 1, 7,
               {{"exec_id", uint64_t{9}}, {"model_name", std::string("llama")}});
  uint64_t tracking_id = 2;
  const auto run = [&](const std::string& exec_id) {
    script_.Span("nc_exec_running", kBase + 10 * tracking_id, kBase + 10 * tracking_id + 5,
                 tracking_id, 7, {{"exec_id", exec_id}});
    ++tracking_id;
  };
  // As many texts as there can be a place of the chunk's in which the ninth stands.
  for (int i = 0; i < 20; ++i) run(fmt::format("not {}", i));
  run("9");
  Close(stream);
  ExportJson();
  const auto has_model = [this](int event) {
    return Events().values(event).struct_value().fields().contains("model_name");
  };
  for (int i = 1; i <= 20; ++i) EXPECT_FALSE(has_model(i)) << i;
  EXPECT_TRUE(has_model(21)) << "a number can come as text";
}

TEST_F(JsonTest, WritesFrameworkSpansAndInstantsAlone) {
  const uint32_t stream = AddFile("i-a", "worker0.pt.trace.json");
  const auto top = [](const std::string& name, EventScript::Value value) {
    return EventScript::Attribute{name, std::move(value), KeyScope::kTop};
  };
  script_.Complete("cpu_op", kBase, 0, 5,
                   {top("name", std::string("aten::mm")),
                    top("pid", std::string("Spans")),
                    top("dur_ns", uint64_t{30}),
                    {"name", uint64_t{3}}});
  script_.Add("ac2g", Phase::kFlowStart, kBase, 0, 5, {top("flow_id", uint64_t{1})});
  script_.Add("", Phase::kCounter, kBase, 0, 5, {{"bytes", uint64_t{1}}});
  script_.Instant("cpu_instant_event", kBase + 5, 0, 5, {top("name", std::string("[memory]"))});
  Close(stream);
  const std::string text = ExportJson();
  EXPECT_EQ(Events().values_size(), 2);
  EXPECT_THAT(text, HasSubstr(fmt::format(
                        R"({{"name":"aten::mm","timestamp":{},"duration":30,"timestamp_unit":"ns",)"
                        R"("instance_id":"i-a","process_id":"Spans","thread_id":5,)"
                        R"("trace_event_source":"framework","category":"cpu_op","data.name":3}})",
                        kBase)));
  EXPECT_THAT(text, HasSubstr("\"phase\":\"instant\""));
}

TEST_F(JsonTest, ExportsHostSamples) {
  AddHost("i-a");
  AddHost("i-b");
  const uint32_t broken = AddHost("i-c");
  script_.Add(std::string(kHostCpuEventType), Phase::kCounter, kBase, 0, 0,
              {{std::string(kHostUtilPercentKey), std::string("much")}});
  Close(broken);
  const std::string text = ExportJson();
  EXPECT_EQ(Events().values_size(), 0);
  EXPECT_EQ(parsed_.fields().at("cpu_util").list_value().values_size(), 6);
  EXPECT_EQ(parsed_.fields().at("mem_usage").list_value().values_size(), 3);
  EXPECT_THAT(text,
              HasSubstr(fmt::format(R"({{"timestamp":{},"duration":1000000000,"instance_id":"i-b",)"
                                    R"("cpu_id":"average","util":12.5}})",
                                    kBase)));
  EXPECT_THAT(text, HasSubstr(fmt::format(R"({{"timestamp":{},"duration":0,"instance_id":"i-a",)"
                                          R"("percent_usage":50,"usage":1024}})",
                                          kBase + 1'000'000'000)));
  // What a filter leaves out is left out there as well.
  ExportRequest request;
  request.filter.event_types = *EventFilter::Parse({"host_memory"});
  request.filter.instance_ids = {"i-b"};
  ExportJson(request);
  EXPECT_EQ(parsed_.fields().at("cpu_util").list_value().values_size(), 0);
  EXPECT_EQ(parsed_.fields().at("mem_usage").list_value().values_size(), 1);
}

TEST_F(JsonTest, SamplesOfHostsThatCannotBeReadAreCountedOnce) {
  Close(AddCore("i-a", 1, 0, 0), "nrt_execute");
  source_.Lose(AddHost("i-b"), 0);  // both lists would have been read from it
  const uint32_t lost = AddCore("i-a", 1, 1, 1);
  Close(lost, "nrt_execute");
  source_.Lose(lost, 0);
  const std::string text = ExportJson();
  EXPECT_EQ(summary_.counts.unreadable_chunks, 2u);
  ASSERT_EQ(summary_.warnings.size(), 2u);
  EXPECT_THAT(text, HasSubstr(R"({"message":"chunk 0 of i-b host cannot be read and is omitted)"));
}

class JsonMemoryTest : public JsonTest {
 protected:
  // An allocation of a third of a microsecond.
  void Allocate(uint64_t start_ns, uint64_t tracking_id, const std::string& usage, uint64_t bytes,
                uint64_t total) {
    script_.Span("nrt_dma_mem_alloc", start_ns, start_ns + 300, tracking_id, 7,
                 {{"hbm_idx", uint64_t{1}}, {"mla_idx", uint64_t{3}}, {"usage_type", usage}},
                 {{"total_bytes", total}, {"usage_type_total_bytes", bytes}});
  }
  const google::protobuf::ListValue& Usage() {
    return parsed_.fields().at("hbm_usage").list_value();
  }
};

TEST_F(JsonMemoryTest, ExportsDeviceMemoryUsage) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  Close(stream, "nrt_execute");
  Allocate(kBase + 1'000, 5, "Tensors", 4'096, 4'096);
  Close(stream);
  // Its stop is in another chunk, and the last of all.
  script_.Start(
      "nrt_dma_mem_dealloc", kBase + 2'000, 6, 7,
      {{"hbm_idx", uint64_t{1}}, {"mla_idx", uint64_t{3}}, {"usage_type", std::string("weights")}});
  Close(stream);
  script_.Stop("nrt_dma_mem_dealloc", kBase + 9'000, 6, 7,
               {{"total_bytes", UINT64_MAX}, {"usage_type_total_bytes", uint64_t{7}}});
  Close(stream);
  const std::string text = ExportJson();
  ASSERT_EQ(Usage().values_size(), 2);
  EXPECT_THAT(
      text,
      HasSubstr(fmt::format(
          R"({{"timestamp":{},"instance_id":"i-a","device_idx":3,"hbm_idx":1,"total_bytes":4096,)"
          R"("generic_bytes":0,"tensor_instructions_bytes":0,)",
          kBase + 1'300)));
  EXPECT_THAT(text, HasSubstr("\"tensors_bytes\":4096,\"ucode_lib_bytes\":0,"));
  EXPECT_THAT(text,
              HasSubstr(fmt::format("{{\"timestamp\":{},\"instance_id\":\"i-a\",\"device_idx\":3,"
                                    "\"hbm_idx\":1,\"total_bytes\":18446744073709551615,",
                                    kBase + 9'000)));
  EXPECT_THAT(text, HasSubstr("\"weights_bytes\":7,"));

  // What a filter leaves out is left out there as well.
  ExportRequest request;
  request.filter.event_types = *EventFilter::Parse({"^nrt_dma_mem_dealloc"});
  ExportJson(request);
  EXPECT_EQ(Usage().values_size(), 1);
  request.filter.event_types = *EventFilter::Parse({"nrt_execute"});
  ExportJson(request);
  EXPECT_EQ(Usage().values_size(), 0);
  request = {};
  request.filter.window_start_ns = kBase + 1'500;
  ExportJson(request);
  EXPECT_EQ(Usage().values_size(), 1);
}

// They are read a second time: only where they are, and never all at once.
TEST_F(JsonMemoryTest, ReadsNothingTwiceButTheChunksAroundAllocations) {
  constexpr uint64_t kChunks = 200;
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  for (uint64_t i = 0; i < kChunks; ++i) {
    const uint64_t at = kBase + i * 1'000'000'000;
    script_.Span("nrt_execute", at, at + 10, i + 1);
    if (i == 7) Allocate(at + 20, kChunks + i, "io", 1, 1);
    if (i == 9) Allocate(at + 20, kChunks + i, "io", 2, 2);
    Close(stream);
  }
  ExportJson();
  EXPECT_EQ(Usage().values_size(), 2);
  EXPECT_LT(source_.chunks_read(), kChunks + 10);
}

TEST_F(JsonTest, ListsDeviceProfiles) {
  Close(AddCore("i-a", 1, 0, 0), "nrt_execute");
  ExportRequest request;
  request.device_profiles = {{.name = "i-a_pid_1_nc_0_session_2",
                              .instance_id = "i-a",
                              .process_id = 1,
                              .nc_id = 0,
                              .session_id = 2,
                              .path = "i-a_pid_1/profile_nc_0_session_2.ntff"}};
  request.warnings = {"one is not in the list"};
  const std::string text = ExportJson(request);
  EXPECT_THAT(text, HasSubstr(R"({"device_profile_name":"i-a_pid_1_nc_0_session_2",)"
                              R"("instance_id":"i-a","process_id":1,"nc_id":0,"session_id":2,)"
                              R"("path":"i-a_pid_1/profile_nc_0_session_2.ntff"}])"));
  EXPECT_THAT(text, HasSubstr(R"({"message":"one is not in the list","category":"Capture"})"));
}

TEST_F(JsonTest, ExportsLossesAsWarnings) {
  const uint32_t stream = AddCore("i-a", 1, 0, 5);
  source_.stream(stream).losses = {
      {LossPlace::kRuntimeRing, LossReason::kOverwritten, 17, false, kBase, kBase, ""}};
  source_.description().warnings = {"a worker was lost"};
  Close(stream, "span");
  EXPECT_THAT(ExportJson(),
              AllOf(HasSubstr(R"({"message":"a worker was lost","category":"Capture"})"),
                    HasSubstr(R"({"message":"17 trace events of i-a pid 1 nc 0 were)"),
                    HasSubstr(R"("category":"Missing Data"})"),
                    HasSubstr("\"first_ts\":\"2025-06-15 15:06:40.000000000 +0000 UTC\"")));
}

TEST_F(JsonTest, WorkerEventsNameNoCore) {
  const uint32_t stream = AddCore("i-a", 1, limits::kNoNcIdx, -1);
  source_.stream(stream).losses = {
      {LossPlace::kTapBuffer, LossReason::kUnknown, 3, false, kBase, kBase, ""}};
  Close(stream, "span");
  const std::string text = ExportJson();
  EXPECT_THAT(text, HasSubstr(R"("instance_id":"i-a","process_id":"1","thread_id")"));
  EXPECT_THAT(text, HasSubstr(R"("message":"3 trace events of i-a pid 1 were lost)"));
}

TEST_F(JsonTest, ExportsCertificateAsVendorWarning) {
  struct Case {
    uint64_t lost;
    bool unknown;
    const char* sentence;  // empty: none
  };
  const Case cases[] = {
      {0, false, ""},
      {7, false, "7 trace events were dropped during capture (stored 10 out of 17 total events). "},
      {7, true,
       "7 or more trace events were dropped during capture (stored 10 out of at least 17 total "
       "events). "},
      {0, true,
       "An unknown number of trace events were dropped during capture (stored 10 out of at least "
       "10 total events). "}};
  Close(AddCore("i-a", 1, 0, 5), "span");
  for (const Case& test : cases) {
    SCOPED_TRACE(test.sentence);
    Certificate certificate;
    certificate.verdict = "the verdict";
    certificate.findings = {"a finding"};
    certificate.account.stored = 10;
    certificate.account.lost = test.lost;
    certificate.account.expected = 10 + test.lost;
    certificate.account.lost_unknown = test.unknown;
    const std::string text =
        Export("json", {.certificate = &certificate, .certificate_json = R"({"verdict":"x"})"});
    EXPECT_THAT(text, HasSubstr(R"({"message":"the verdict","category":"Capture"})"));
    EXPECT_THAT(text, HasSubstr(R"({"message":"a finding","category":"Missing Data"})"));
    EXPECT_THAT(text, HasSubstr(R"("certificate":{"verdict":"x"}}]})"));
    if (*test.sentence == '\0') {
      EXPECT_THAT(text, Not(HasSubstr("were dropped")));
    } else {
      EXPECT_THAT(text, HasSubstr(fmt::format(
                            R"({{"message":"{}Consider increasing buffer size, reducing trace )"
                            R"(duration, or filtering events.","category":"Missing Data"}})",
                            test.sentence)));
    }
  }
}

TEST(JsonTextTest, DetectsJson) {
  for (const char* text : {"0", "-1.5e+3", "[]", " [1, {\"a\": null}] ", "\"\\u00e9\"", "true",
                           "\"\\ud83d\\ude00\""}) {
    EXPECT_TRUE(IsJson(text)) << text;
  }
  for (const char* text :
       {"", "01", "1.", "[1,]", "{\"a\"}", "{a:1}", "\"", "nul", "1 2", "\"\x01\"", "\"\xff\"",
        "[1}", "-", "\"\\x\"", "\"\\u12\"", "\"\\ud83d\"", "\"\\ude00\"", "\"\\ud83d\\u0041\""}) {
    EXPECT_FALSE(IsJson(text)) << text;
  }
  EXPECT_FALSE(IsJson(std::string(1'000, '[') + std::string(1'000, ']')));
}

}  // namespace
}  // namespace neurontrace
