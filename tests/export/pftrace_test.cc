// SPDX-License-Identifier: Apache-2.0
// Goal: whatever a capture holds, its Perfetto trace is sound and says exactly that. Method:
// captures in memory, exported and read back by pftrace_check, which shares nothing with the
// writer.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "aggregator/export/pftrace/track_table.h"
#include "tests/e2e/pftrace_check/checker.h"
#include "tests/export/export_fixture.h"

namespace neurontrace {
namespace {

using pftrace_check::Check;
using pftrace_check::Report;
using pftrace_check::Slice;
using pftrace_check::Track;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class PftraceTest : public ExportFixture {
 protected:
  Report ExportAndCheck(ExportRequest request = {}) {
    const std::string trace = Export("perfetto", std::move(request));
    ExpectSound(trace);
    Report report = Check(trace);
    EXPECT_THAT(report.errors, IsEmpty());
    return report;
  }
  static std::vector<std::string> RowNames(const Report& report) {
    std::vector<std::string> names;
    for (const Track& track : report.tracks) {
      const bool is_row = track.is_thread || track.name.ends_with("-neuron_rt") ||
                          track.name.ends_with("-neuron_hw");
      if (is_row) names.push_back(track.process + "/" + track.name);
    }
    return names;
  }
};

TEST_F(PftraceTest, EachThreadThatAnnotatesHasARowInItsProcess) {
  Close(AddCore("i-a", 4711, 0, 5), "nrt_execute");
  AddAnnotations("i-a", 4711);
  const Report report = ExportAndCheck();
  std::map<std::string, std::vector<std::string>> names;
  for (const Track& track : report.tracks) {
    if (!track.name.ends_with("-annotation")) continue;
    EXPECT_TRUE(track.process.find("pid4711") != std::string::npos) << track.process;
    for (const auto* slices : {&track.slices, &track.instants}) {
      for (const Slice& slice : *slices) names[track.name].push_back(slice.name);
    }
  }
  EXPECT_THAT(names, UnorderedElementsAre(Pair("tid7-annotation", ElementsAre("step 3", "forward")),
                                          Pair("tid8-annotation", ElementsAre("loss"))));
}

TEST_F(PftraceTest, AnEmptyCaptureIsAValidTrace) {
  const Report report = ExportAndCheck();
  EXPECT_EQ(report.slices, 0u);
  EXPECT_EQ(report.attributes.count("io.neurontrace.capture_id"), 1u);
}

TEST_F(PftraceTest, ReportsUnreadableWindowAndChunkOnce) {
  const uint32_t stream = AddCore("i-a", 1, 0, 5);
  for (uint64_t second = 0; second < 10; ++second) {
    const uint64_t at_ns = kBase + second * 1'000'000'000;
    script_.Span("span", at_ns, at_ns + 50, second + 1);
    Close(stream);
  }
  source_.Lose(stream, 6);
  ExportRequest request;
  request.filter.window_start_ns = kBase + 5'000'000'000;
  const Report report = ExportAndCheck(request);
  std::vector<std::string> told;
  for (const Track& track : report.tracks) {
    if (track.name != "neurontrace warnings") continue;
    for (const Slice& instant : track.instants) told.push_back(instant.name);
  }
  EXPECT_EQ(told, summary_.warnings);
  EXPECT_THAT(told, ElementsAre(HasSubstr("before the time window"),
                                HasSubstr("chunk 6 of i-a pid 1 nc 0")));
}

TEST_F(PftraceTest, NamesRowsAsTheVendorDoes) {
  const uint32_t stream = AddCore("i-0f207fb2a99bd2d08", 1113579, 3, 35);
  script_.Span("nrt_execute", kBase, kBase + 100, 1, 7);
  script_.Span("cc_running", kBase + 10, kBase + 50, 2, 7);
  script_.Instant("timestamp_sync_point", kBase + 60, 0, 7, {{"cpu_timestamp_ns", kBase + 59}});
  Close(stream);
  const Report report = ExportAndCheck();
  EXPECT_THAT(report.processes, ElementsAre("i-0f207fb2a99bd2d08-pid1113579"));
  EXPECT_THAT(RowNames(report),
              ElementsAre("i-0f207fb2a99bd2d08-pid1113579/gid35-nc3-tid7-neuron_rt",
                          "i-0f207fb2a99bd2d08-pid1113579/gid35-nc3-tid7-neuron_hw"));
  const Track* runtime = report.FindRow("gid35-nc3-tid7-neuron_rt");
  ASSERT_THAT(runtime->instants, SizeIs(1));
  EXPECT_EQ(runtime->instants[0].name, "timestamp_sync_point");
  EXPECT_THAT(runtime->instants[0].arguments,
              Contains(Pair("cpu_timestamp_ns", fmt::format("{}", kBase + 59))));
}

TEST_F(PftraceTest, ExportsVendorArguments) {
  const uint32_t stream = AddCore("i-a", 11, 3, 35);
  script_.Start("nrt_execute", kBase, 1, 7,
                {{"model_id", uint64_t{UINT64_MAX}},
                 {"model_name", std::string("llama \xc3\xa9")},
                 {"delta", int64_t{-5}},
                 {"ratio", 0.25},
                 {"hot", true},
                 {"name", std::string("x")}},
                3377699720529031);
  script_.Stop("nrt_execute", kBase + 100, 1, 7, {{"status", uint64_t{0}}});
  Close(stream);
  const Report report = ExportAndCheck();
  const auto slices = report.SlicesOfRow("gid35-nc3-tid7-neuron_rt");
  ASSERT_THAT(slices, SizeIs(1));
  EXPECT_THAT(
      slices[0]->arguments,
      UnorderedElementsAre(
          Pair("device_profile", "device_profile_model_18446744073709551615.pftrace"),
          Pair("duration", "100"), Pair("id", "3377699720529031"), Pair("instance_id", "i-a"),
          Pair("lnc_idx", "3"), Pair("model_name", "llama \xc3\xa9"), Pair("name", "nrt_execute"),
          Pair("nc_idx", "3"), Pair("process_id", "11"), Pair("thread_id", "7"),
          Pair("timestamp", fmt::format("{}", kBase)), Pair("timestamp_unit", "ns"),
          Pair("trace_event_source", "neuron_rt"), Pair("worker_gid", "35"),
          Pair("model_id", "18446744073709551615"), Pair("delta", "-5"), Pair("ratio", "0.25"),
          Pair("hot", "true"), Pair("data.name", "x"), Pair("status", "0")));
}

TEST_F(PftraceTest, GivesEachPhysicalCoreARowAndFindsTheModelsName) {
  const uint32_t stream = AddCore("i-a", 11, 0, 4);
  script_.Span("kbl_exec_pre", kBase, kBase + 5, 1, 7,
               {{"exec_id", uint64_t{9}}, {"model_name", std::string("llama")}});
  for (uint64_t core : {uint64_t{4}, uint64_t{5}}) {
    script_.Span(
        "nc_exec_running", kBase + 10 + core, kBase + 90 + core, 10 + core, 7,
        {{"device_core_idx", core}, {"exec_id", uint64_t{9}}, {"nc_timestamp_ns", uint64_t{1000}}},
        {{"nc_timestamp_ns", uint64_t{1080}}});
  }
  script_.Span("cc_running", kBase + 20, kBase + 30, 20, 7);
  Close(stream);
  const Report report = ExportAndCheck();
  std::vector<std::string> names;
  for (const Track& track : report.tracks) {
    if (!track.name.ends_with("-neuron_hw")) continue;
    names.push_back(track.name);
    EXPECT_EQ(track.parent, "worker gid4");
    if (track.name == "gid4-nc0-tid7-neuron_hw") {  // of the event that names no core
      EXPECT_EQ(track.slices[0].name, "cc_running");
      continue;
    }
    EXPECT_THAT(track.description, HasSubstr("physical core"));
    EXPECT_EQ(track.slices[0].name, "nc_exec_running llama");
    EXPECT_THAT(track.slices[0].arguments, Contains(Pair("nc_start_timestamp_ns", "1000")));
    EXPECT_THAT(track.slices[0].arguments, Contains(Pair("nc_stop_timestamp_ns", "1080")));
  }
  EXPECT_THAT(names, ElementsAre("gid4-nc0-tid7-core4-neuron_hw", "gid4-nc0-tid7-core5-neuron_hw",
                                 "gid4-nc0-tid7-neuron_hw"));
}

TEST_F(PftraceTest, LeavesOutTheGidThatIsNotKnown) {
  Close(AddCore("i-a", 1, 2, -1), "span");
  EXPECT_THAT(RowNames(ExportAndCheck()), ElementsAre("i-a-pid1/nc2-tid7-neuron_rt"));
}

TEST_F(PftraceTest, KeepsApartWorkersOfOnePidAndCoresOfOneGid) {
  StreamIdentity identity = Core("i-a", 1, 0);
  identity.worker.container_id = "aaaaaaaaaaaaaaaa";
  Close(source_.AddStream(identity, {Claim(7)}), "span");
  identity.worker.container_id = "bbbbbbbbbbbbbbbb";
  Close(source_.AddStream(identity, {Claim(7)}), "span");
  const Report report = ExportAndCheck();
  EXPECT_THAT(report.processes, ElementsAre("i-a-pid1", "i-a-pid1-container bbbbbbbbbbbb"));
  EXPECT_THAT(report.attributes, Contains(Pair("io.neurontrace.warning.0", HasSubstr("gid 7"))));
}

TEST_F(PftraceTest, GroupsAsAsked) {
  Close(AddCore("i-a", 1, 0, 5), "span");
  Close(AddCore("i-a", 2, 0, 6), "span");
  ExportRequest request;
  request.primary_group = {"instance_id"};
  request.secondary_group = {"process_id", "worker_gid"};
  const Report report = ExportAndCheck(request);
  EXPECT_THAT(RowNames(report), ElementsAre("i-a/pid1-gid5-neuron_rt", "i-a/pid2-gid6-neuron_rt"));
  request.primary_group = {"worker_gid"};
  EXPECT_THAT(ExportError("perfetto", request),
              HasSubstr("primary group: unknown key 'worker_gid'; the keys are instance_id"));
}

TEST_F(PftraceTest, StreamsEqualUnderGroupingShareRow) {
  Close(AddCore("i-a", 1, 0, 5), "span");
  Close(AddCore("i-a", 1, 1, 6), "span");
  ExportRequest request;
  request.secondary_group = {"thread_id"};
  const Report report = ExportAndCheck(request);
  EXPECT_THAT(RowNames(report), ElementsAre("i-a-pid1/tid7-neuron_rt"));
  const auto slices = report.SlicesOfRow("tid7-neuron_rt");
  ASSERT_THAT(slices, SizeIs(2));
  EXPECT_THAT(slices[0]->arguments, Contains(Pair("worker_gid", "5")));
  EXPECT_THAT(slices[1]->arguments, Contains(Pair("worker_gid", "6")));
}

TEST_F(PftraceTest, SplitsOverlapsIntoLanes) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  script_.Span("a", kBase, kBase + 50, 1);
  script_.Span("b", kBase + 10, kBase + 60, 2);  // overlaps a
  script_.Span("c", kBase + 20, kBase + 40, 3);  // inside a
  script_.Span("d", kBase + 50, kBase + 70, 4);  // touches a, overlaps b
  script_.Span("e", kBase + 50, kBase + 50, 5);  // of no length, where a ends
  script_.Span("f", kBase, kBase + 5, 6);        // begins with a
  Close(stream);
  const Report report = ExportAndCheck();
  std::vector<std::string> lanes;
  for (const Track& track : report.tracks) {
    std::string names;
    for (const Slice& slice : track.slices) names += slice.name;
    if (!names.empty()) lanes.push_back(names);
  }
  EXPECT_THAT(lanes, ElementsAre("afcde", "b"));
  for (const Slice* slice : report.SlicesOfRow("gid0-nc0-tid7-neuron_rt")) {
    EXPECT_THAT(slice->arguments,
                Contains(Pair("duration", fmt::format("{}", slice->end_ns - slice->start_ns))));
  }
}

TEST_F(PftraceTest, ShowsOpenAndStartLostSpansAndStopsOfLaterChunks) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  script_.Stop("lost", kBase + 1, 1, 7);
  script_.Start("open", kBase + 2, 2, 7);
  script_.Start("load", kBase + 3, 3, 7);
  Close(stream);
  script_.Stop("load", kBase + 30, 3, 7, {{"model_id", uint64_t{4}}});
  Close(stream);
  const Report report = ExportAndCheck();
  const auto slices = report.SlicesOfRow("gid0-nc0-tid7-neuron_rt");
  ASSERT_THAT(slices, SizeIs(3));
  EXPECT_THAT(slices[0]->arguments, Contains(Pair("start_lost", "true")));
  EXPECT_EQ(slices[0]->end_ns, slices[0]->start_ns);
  EXPECT_THAT(slices[1]->arguments, Contains(Pair("open", "true")));
  EXPECT_EQ(slices[1]->end_ns, kBase + 30);
  EXPECT_THAT(slices[2]->arguments, Contains(Pair("model_id", "4")));
  EXPECT_EQ(slices[2]->end_ns, kBase + 30);
}

TEST_F(PftraceTest, ShowsLossesAndWarnings) {
  const uint32_t stream = AddCore("i-a", 1, 0, 5);
  source_.stream(stream).losses = {
      {LossPlace::kRuntimeRing, LossReason::kOverwritten, 17, false, kBase + 2, kBase + 3, "x"},
      {LossPlace::kTapBuffer, LossReason::kFull, 0, true, 0, 0, ""}};
  source_.description().warnings = {"a worker was lost"};
  Close(stream, "span");
  const Report report = ExportAndCheck();
  EXPECT_THAT(report.attributes, Contains(Pair("io.neurontrace.warning.0", "a worker was lost")));
  uint64_t losses = 0;
  for (const Track& track : report.tracks) {
    for (const Slice& instant : track.instants) {
      if (instant.name == "events lost") ++losses;
    }
    if (track.name == "gid5-nc0-losses") {
      ASSERT_THAT(track.instants, SizeIs(2));
      EXPECT_THAT(track.instants[1].arguments, Contains(Pair("events", "17")));
      EXPECT_EQ(track.instants[1].start_ns, kBase + 2);
    }
    if (track.name == "neurontrace warnings") {
      EXPECT_EQ(track.instants[0].name, "a worker was lost");
    }
  }
  EXPECT_EQ(losses, 2u);
}

TEST_F(PftraceTest, WorkerEventsNameNoCore) {
  const uint32_t stream = AddCore("i-a", 1, limits::kNoNcIdx, -1);
  source_.stream(stream).losses = {
      {LossPlace::kTapBuffer, LossReason::kUnknown, 0, true, kBase, kBase, ""}};
  Close(stream, "span");
  const Report report = ExportAndCheck();
  bool has_losses = false;
  for (const Track& track : report.tracks) {
    EXPECT_THAT(track.name, Not(HasSubstr("nc")));
    has_losses = has_losses || track.name == "worker-losses";
    for (const Slice& slice : track.slices) {
      EXPECT_THAT(slice.arguments, Not(Contains(Key("nc_idx"))));
    }
  }
  EXPECT_TRUE(has_losses);
}

TEST_F(PftraceTest, ShowsEachLossAtItsTimeAndTheRestOnce) {
  const uint32_t stream = AddCore("i-a", 1, 0, 5);
  source_.stream(stream).losses = {
      {LossPlace::kRuntimeRing, LossReason::kOverwritten, 20, false, kBase, kBase + 9, "x"},
      {LossPlace::kSpool, LossReason::kFull, 4, false, kBase + 5, kBase + 6, "y"}};
  source_.stream(stream).gaps = {
      {LossPlace::kRuntimeRing, LossReason::kOverwritten, 8, false, kBase + 1, kBase + 2, ""},
      {LossPlace::kRuntimeRing, LossReason::kOverwritten, 7, false, kBase + 7, kBase + 9, ""},
      {LossPlace::kSpool, LossReason::kFull, 4, false, kBase + 5, kBase + 6, ""}};
  Close(stream, "span");
  const Report report = ExportAndCheck();
  std::vector<std::string> told;
  for (const Track& track : report.tracks) {
    if (track.name != "gid5-nc0-losses") continue;
    for (const Slice& instant : track.instants) {
      const auto argument = [&](const std::string& name) {
        for (const auto& [key, value] : instant.arguments) {
          if (key == name) return value;
        }
        return std::string("-");
      };
      told.push_back(fmt::format("{} {} {} {}", instant.start_ns - kBase, argument("place"),
                                 argument("events"), argument("gap_ns")));
    }
  }
  // 20 in the ring: 8 and 7 at their times, and 5 that are not known one by one.
  EXPECT_THAT(told, ElementsAre("0 runtime ring 5 9", "1 runtime ring 8 1", "5 spool 4 1",
                                "7 runtime ring 7 2"));
}

TEST_F(PftraceTest, CarriesTheCertificate) {
  Close(AddCore("i-a", 1, 0, 5), "span");
  Certificate certificate;
  certificate.verdict = "the verdict";
  certificate.account.expected = 9;
  ExportRequest request;
  request.certificate = &certificate;
  request.certificate_json = R"({"verdict":"x"})";
  const Report report = ExportAndCheck(request);
  EXPECT_THAT(report.attributes, Contains(Pair("io.neurontrace.verdict", "the verdict")));
  EXPECT_THAT(report.attributes,
              Contains(Pair("io.neurontrace.certificate", request.certificate_json)));
  for (const Track& track : report.tracks) {
    if (track.name != "neurontrace warnings") continue;
    ASSERT_THAT(track.instants, SizeIs(1));
    EXPECT_EQ(track.instants[0].name, "certificate");
    EXPECT_THAT(track.instants[0].arguments, Contains(Pair("expected", "9")));
    EXPECT_THAT(track.instants[0].arguments,
                Contains(Pair("certificate", request.certificate_json)));
  }
}

TEST_F(PftraceTest, ShowsFrameworkTraces) {
  const uint32_t stream = AddFile("i-a", "worker0.pt.trace.json");
  const auto top = [](const std::string& name, EventScript::Value value) {
    return EventScript::Attribute{name, std::move(value), KeyScope::kTop};
  };
  const auto pid = top("pid", uint64_t{0});
  script_.Add("M", Phase::kMetadata, kBase, 0, 7,
              {top("name", std::string("thread_name")), pid, {"name", std::string("stream 7")}});
  script_.Add("M", Phase::kMetadata, kBase, 0, 0,
              {top("name", std::string("process_name")), pid, {"name", std::string("python")}});
  const auto span = [&](const std::string& category, const std::string& name, uint64_t at,
                        uint64_t length, uint64_t tid) {
    script_.Complete(category, at, 0, tid,
                     {top("name", name), pid, top("dur_ns", length), {"bytes", uint64_t{12}}});
  };
  const auto flow = [&](Phase phase, uint64_t at, uint64_t tid, uint64_t id) {
    script_.Add("ac2g", phase, at, 0, tid,
                {top("name", std::string("ac2g")), pid, top("flow_id", id)});
  };
  span("cuda_runtime", "launch", kBase + 10, 20, 1);
  flow(Phase::kFlowStart, kBase + 10, 1, 5);
  span("kernel", "gemm", kBase + 40, 30, 7);
  flow(Phase::kFlowEnd, kBase + 40, 7, 5);
  flow(Phase::kFlowEnd, kBase + 45, 7, 6);  // nobody started it
  flow(Phase::kFlowEnd, kBase + 90, 7, 8);  // nor this, and nothing is there
  script_.Add("", Phase::kCounter, kBase + 50, 0, 0,
              {top("name", std::string("memory")), pid, {"bytes", 1.5}});
  Close(stream);
  const Report report = ExportAndCheck();
  EXPECT_THAT(report.processes, ElementsAre("i-a-pid0 python (worker0.pt.trace.json)"));
  const auto kernels = report.SlicesOfRow("stream 7-framework");
  ASSERT_THAT(kernels, SizeIs(1));
  EXPECT_EQ(kernels[0]->name, "gemm");
  EXPECT_EQ(kernels[0]->category, "kernel");
  EXPECT_THAT(kernels[0]->arguments, Contains(Pair("bytes", "12")));
  EXPECT_THAT(kernels[0]->arguments, Contains(Pair("trace_event_source", "framework")));
  const auto launches = report.SlicesOfRow("tid1-framework");
  ASSERT_THAT(launches, SizeIs(1));
  ASSERT_THAT(launches[0]->flows, SizeIs(1));
  EXPECT_THAT(kernels[0]->flows, Contains(launches[0]->flows[0]));
  EXPECT_EQ(report.flow_points, 3u);
  EXPECT_EQ(report.flow_arrows, 1u);
  EXPECT_EQ(report.lone_flow_points, 1u);
  EXPECT_EQ(report.counters, 1u);
  EXPECT_THAT(summary_.warnings,
              ElementsAre(HasSubstr("1 of 2 arrow ends in framework traces have no start"),
                          HasSubstr("1 of 4 arrow points in framework traces lie where")));
}

// Random spans on a few rows, with equal times, no lengths, overlaps and numbers at the end of the
// scale: every one must come out with its own begin and end.
class PftraceRandomTest : public PftraceTest, public ::testing::WithParamInterface<int> {};

TEST_P(PftraceRandomTest, EverySpanComesOutWithItsOwnLength) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()));
  const uint64_t grain = GetParam() % 2 == 0 ? 1 : 50;
  std::vector<std::tuple<std::string, uint64_t, uint64_t>> expected;
  for (uint32_t core = 0; core < 8; ++core) {
    const uint32_t stream = AddCore(core < 4 ? "i-a" : "i-\xe2\x82\xac", 1 + core % 2, core,
                                    static_cast<int64_t>(core));
    uint64_t now = kBase;
    for (uint64_t i = 0; i < 2'000; ++i) {
      now += random() % 4 == 0 ? 0 : grain * (random() % 20);
      const uint64_t length = random() % 5 == 0 ? 0 : grain * (random() % 100);
      const std::string name = fmt::format("n{}\xf0\x9f\x94\xa5", random() % 6);
      script_.Span(name, now, now + length, UINT64_MAX - i, UINT64_MAX - random() % 3,
                   {{"i", UINT64_MAX - i}});
      expected.emplace_back(name, now, now + length);
      if (i % 300 == 299) Close(stream);
    }
    Close(stream);
  }
  const Report report = ExportAndCheck();
  std::vector<std::tuple<std::string, uint64_t, uint64_t>> seen;
  for (const Track& track : report.tracks) {
    for (const Slice& slice : track.slices) {
      seen.emplace_back(slice.name, slice.start_ns, slice.end_ns);
    }
  }
  std::sort(expected.begin(), expected.end());
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, expected);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PftraceRandomTest, ::testing::Range(1, 9));

TEST_F(PftraceTest, ReportsLengthsLostToDeepOverlap) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  for (uint64_t i = 0; i < 1'500; ++i) script_.Span("s", kBase + i, kBase + 10'000 + i, i + 1);
  Close(stream);
  const Report report = ExportAndCheck();
  EXPECT_EQ(report.slices, 1'500u);
  EXPECT_THAT(summary_.warnings, Contains(HasSubstr("476 spans are shown without their length")));
}

TEST_F(PftraceTest, DeepNestingContinuesInAnotherLane) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  for (uint64_t i = 0; i < 1'100; ++i) script_.Span("s", kBase + i, kBase + 10'000 - i, i + 1);
  Close(stream);
  const Report report = ExportAndCheck();
  EXPECT_EQ(report.slices, 1'100u);
  EXPECT_EQ(report.SlicesOfRow("gid0-nc0-tid7-neuron_rt").size(), 1'100u);
}

TEST_F(PftraceTest, StartsTheSequenceOverWhenTooManyTextsAreInterned) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  for (uint64_t i = 0; i < 150'000; ++i) {
    script_.Span("s", kBase + 10 * i, kBase + 10 * i + 5, i + 1, 7,
                 {{"address", fmt::format("0x{:x}", i)}});
    if (i % 2'000 == 1'999) Close(stream);
  }
  const Report report = ExportAndCheck();
  EXPECT_EQ(report.slices, 150'000u);
  EXPECT_GE(report.generations, 3u);
}

TEST_F(PftraceTest, FirstCountersContinueBeyondLimit) {
  const uint32_t stream = AddFile("i-a", "worker0.pt.trace.json");
  const auto count = [&](uint64_t at, uint64_t number, uint64_t value) {
    script_.Add("", Phase::kCounter, kBase + at, 0, 0,
                {{"name", fmt::format("c{}", number), KeyScope::kTop}, {"bytes", value}});
  };
  const uint64_t counters = RowModel::kRowsMax + 2;
  for (uint64_t i = 0; i < counters; ++i) {
    count(i, i, 1);
    if (i % 4'000 == 3'999) Close(stream);
  }
  count(counters, 0, 2);
  Close(stream);
  const Report report = ExportAndCheck();
  const auto values = [&](const std::string& name) {
    size_t values = 0;
    for (const auto& track : report.tracks) {
      if (track.name == name) values += track.counter.size();
    }
    return values;
  };
  EXPECT_EQ(values("c0 bytes"), 2u);
  EXPECT_EQ(values("further counters"), 2u);
}

}  // namespace
}  // namespace neurontrace
