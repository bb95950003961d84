// SPDX-License-Identifier: Apache-2.0
// Goal: what a trace shows besides what was recorded is right, is in its place and is marked as
// derived; arrows join what belongs together. Method: captures in memory, exported, read back by
// pftrace_check and validated.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lib/trace/host_samples.h"
#include "tests/e2e/pftrace_check/checker.h"
#include "tests/export/export_fixture.h"

namespace neurontrace {
namespace {

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

class PftraceDerived : public ExportFixture {
 protected:
  Report ExportAndCheck(const ExportRequest& request = {}) {
    const std::string trace = Export("perfetto", request);
    ExpectSound(trace);
    Report report = pftrace_check::Check(trace);
    EXPECT_THAT(report.errors, IsEmpty());
    return report;
  }
  static const Track* Find(const Report& report, const std::string& name) {
    for (const Track& track : report.tracks) {
      if (track.name == name) return &track;
    }
    ADD_FAILURE() << "no track " << name;
    static const Track kNone;
    return &kNone;
  }
  void AddExecution(uint64_t exec_id, uint64_t begin_ns) {
    script_.Span("kbl_exec_pre", begin_ns, begin_ns + 5, 100 + exec_id, 7,
                 {{"exec_id", exec_id}, {"model_name", std::string("llama")}});
    for (uint64_t core : {uint64_t{4}, uint64_t{5}}) {
      script_.Span("nc_exec_running", begin_ns + 10 + core, begin_ns + 90 + core,
                   200 + 10 * exec_id + core, 7, {{"device_core_idx", core}, {"exec_id", exec_id}});
    }
  }
};

TEST_F(PftraceDerived, AStepForEachExecutionAndAnArrowToItsDevicePart) {
  const uint32_t stream = AddCore("i-a", 11, 0, 4);
  AddExecution(1, kBase);
  AddExecution(2, kBase + 1'000);
  Close(stream);
  const Report report = ExportAndCheck();
  const Track* steps = Find(report, "gid4-nc0 steps (derived)");
  EXPECT_EQ(steps->process, "i-a-pid11");
  ASSERT_THAT(steps->slices, SizeIs(2));
  EXPECT_EQ(steps->slices[0].start_ns, kBase + 14);
  EXPECT_EQ(steps->slices[0].end_ns, kBase + 95) << "the union of both physical cores";
  EXPECT_EQ(steps->slices[1].name, "step 1");
  EXPECT_THAT(steps->slices[1].arguments, Contains(Pair("number", "1")));
  EXPECT_THAT(steps->slices[1].arguments, Contains(Pair("worker_gid", "4")));
  EXPECT_THAT(steps->slices[1].arguments, Contains(Pair("exec_id", "2")));
  EXPECT_THAT(steps->slices[1].arguments, Contains(Pair("model_name", "llama")));
  EXPECT_THAT(steps->slices[1].arguments, Contains(Pair("derived", "true")));
  EXPECT_EQ(report.flow_points, 6u);
  EXPECT_EQ(report.flow_arrows, 4u) << "from each preparation to both physical cores";
  EXPECT_EQ(ExportAndCheck({.no_flows = true}).flow_points, 0u);
}

TEST_F(PftraceDerived, AnArrowFromAFrameworksOperationToItsCallAndOnToTheDevice) {
  const uint32_t stream = AddCore("i-a", 11, 0, 4);
  script_.Span("nrt_execute", kBase + 10, kBase + 95, 1, 7);
  AddExecution(1, kBase + 20);
  Close(stream);
  const uint32_t file = AddFile("i-a", "worker0.pt.trace.json");
  script_.Complete("cpu_op", kBase, 0, 7,
                   {{"name", std::string("aten::mm"), KeyScope::kTop},
                    {"pid", uint64_t{11}, KeyScope::kTop},
                    {"dur_ns", uint64_t{100}, KeyScope::kTop}});
  Close(file);
  const Report report = ExportAndCheck();
  EXPECT_EQ(report.flow_points, 6u) << "of the call both";
  EXPECT_EQ(report.flow_arrows, 4u) << "to the call, to its preparation, to both physical cores";
  EXPECT_EQ(ExportAndCheck({.no_flows = true}).flow_points, 0u);
}

TEST_F(PftraceDerived, ACollectiveOfAllCores) {
  for (uint32_t rank = 0; rank < 3; ++rank) {
    const uint32_t stream = AddCore("i-a", 10 + rank, 0, rank);
    script_.Span("cc_running", kBase + 10 * rank, kBase + 100, 1, 7,
                 {{"gid", uint64_t{rank}},
                  {"op_id", uint64_t{9}},
                  {"exec_id", uint64_t{1}},
                  {"algorithm", std::string("ring")}});
    Close(stream);
  }
  const Report report = ExportAndCheck();
  const Track* track = Find(report, "collectives (derived)");
  ASSERT_THAT(track->slices, SizeIs(1));
  const Slice& slice = track->slices[0];
  EXPECT_EQ(slice.name, "collective ring");
  EXPECT_EQ(slice.start_ns, kBase);
  EXPECT_EQ(slice.end_ns, kBase + 100);
  EXPECT_THAT(slice.arguments, Contains(Pair("cores", "3")));
  EXPECT_THAT(slice.arguments, Contains(Pair("arrival_skew_ns", "20")));
  EXPECT_THAT(slice.arguments, Contains(Pair("last_to_arrive", "gid2-nc0")));
  EXPECT_THAT(slice.arguments, Contains(Pair("worker_gid", "2"))) << "of the last to arrive";
  EXPECT_THAT(slice.arguments, Not(Contains(Key("open"))));
  EXPECT_EQ(report.flow_points, 0u) << "arrows between spans that overlap would point backwards";
  EXPECT_NE(slice.correlation_id, 0u);
  size_t parts = 0;
  for (const Track& of_core : report.tracks) {
    for (const Slice& part : of_core.slices) {
      if (part.name == "cc_running") EXPECT_EQ(part.correlation_id, slice.correlation_id);
      parts += part.name == "cc_running" ? 1 : 0;
    }
  }
  EXPECT_EQ(parts, 3u);
}

TEST_F(PftraceDerived, ACollectiveThatIsCutOffIsOpen) {
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const uint32_t stream = AddCore("i-a", 10 + rank, 0, rank);
    const EventScript::Attributes about = {
        {"gid", uint64_t{rank}}, {"op_id", uint64_t{9}}, {"exec_id", uint64_t{1}}};
    if (rank == 0) {
      script_.Span("cc_running", kBase, kBase + 100, 1, 7, about);
    } else {
      script_.Start("cc_running", kBase + 10, 2, 7, about);
      script_.Span("nrt_execute", kBase + 20, kBase + 90, 3);
    }
    Close(stream);
  }
  const Report report = ExportAndCheck();
  const Track* track = Find(report, "collectives (derived)");
  ASSERT_THAT(track->slices, SizeIs(1));
  EXPECT_THAT(track->slices[0].arguments, Contains(Pair("open", "true")));
  EXPECT_EQ(track->slices[0].category, "open");
}

TEST_F(PftraceDerived, RowsOfCoresHaveTheSameNamesWhateverCameFirst) {
  const auto names = [this](bool unknown_first) {
    source_ = FakeChunkSource();
    const uint32_t stream = AddCore("i-a", 11, 0, 4);
    const uint64_t at_ns = unknown_first ? kBase : kBase + 1'000;
    script_.Span("cc_running", at_ns, at_ns + 50, 1, 7);
    AddExecution(1, kBase + 100);
    Close(stream);
    std::set<std::string> names;
    for (const Track& track : ExportAndCheck().tracks) {
      if (track.name.ends_with("neuron_hw")) {
        names.insert(fmt::format("{} {}", track.name, track.slices.size()));
      }
    }
    return names;
  };
  const std::set<std::string> expected = {"gid4-nc0-tid7-core4-neuron_hw 1",
                                          "gid4-nc0-tid7-core5-neuron_hw 1",
                                          "gid4-nc0-tid7-neuron_hw 1"};
  EXPECT_EQ(names(true), expected);
  EXPECT_EQ(names(false), expected);
}

TEST_F(PftraceDerived, AnExecutionInAWindowKeepsTheModelThatWasPreparedBefore) {
  const uint32_t stream = AddCore("i-a", 11, 0, 4);
  AddExecution(1, kBase);
  script_.Span("nrt_execute", kBase + 500, kBase + 600, 999);
  Close(stream);
  ExportRequest request;
  request.filter.window_start_ns = kBase + 50;
  request.filter.window_end_ns = kBase + 1'000;
  const Report report = ExportAndCheck(request);
  const Track* row = Find(report, "gid4-nc0-tid7-core4-neuron_hw");
  ASSERT_THAT(row->slices, SizeIs(1));
  EXPECT_EQ(row->slices[0].name, "nc_exec_running llama");
  const Track* steps = Find(report, "gid4-nc0 steps (derived)");
  ASSERT_THAT(steps->slices, SizeIs(1));
  EXPECT_THAT(steps->slices[0].arguments, Contains(Pair("model_name", "llama")));
  for (const char* format : {"json", "chrome-json"}) {
    EXPECT_THAT(Export(format, request), HasSubstr("llama")) << format;
  }
}

TEST_F(PftraceDerived, ACertificateOfAWindowStandsInTheWindow) {
  const uint32_t stream = AddCore("i-a", 11, 0, 4);
  for (uint64_t i = 0; i < 10; ++i) {
    script_.Span("nrt_execute", kBase + i * 1'000'000'000, kBase + i * 1'000'000'000 + 500, 1 + i);
  }
  Close(stream);
  Certificate certificate;
  ExportRequest request;
  request.certificate = &certificate;
  request.certificate_json = "{}";
  request.filter.window_start_ns = kBase + 5'000'000'000;
  request.filter.window_end_ns = kBase + 7'000'000'000;
  const Report report = ExportAndCheck(request);
  const Track* warnings = Find(report, "neurontrace warnings");
  ASSERT_FALSE(warnings->instants.empty());
  for (const Slice& instant : warnings->instants) {
    EXPECT_GE(instant.start_ns, request.filter.window_start_ns) << instant.name;
    EXPECT_LT(instant.start_ns, request.filter.window_end_ns) << instant.name;
  }
  EXPECT_EQ(warnings->instants[0].name, "certificate");
  EXPECT_THAT(Export("chrome-json", request),
              HasSubstr(fmt::format("\"baseTimeNanoseconds\":{}", kBase + 5'000'000'000)));
}

TEST_F(PftraceDerived, HardwareEventsAloneHaveNoRowsOfTheRuntime) {
  const uint32_t stream = AddCore("i-a", 11, 0, 4);
  AddExecution(1, kBase);
  script_.Instant("timestamp_sync_point", kBase + 50, 0, 7);
  Close(stream);
  ExportRequest request;
  request.filter.event_types = *EventFilter::Parse({"hardware"});
  size_t instants = 0;
  for (const Track& track : ExportAndCheck(request).tracks) {
    EXPECT_THAT(track.name, Not(HasSubstr("neuron_rt")));
    if (track.name.ends_with("(derived)")) continue;
    instants += track.instants.size();
  }
  EXPECT_EQ(instants, 1u) << "the synchronisation point is there";
  EXPECT_THAT(Export("chrome-json", request), Not(HasSubstr("tid7-neuron_rt")));
}

TEST_F(PftraceDerived, AnArgumentHasOneTypeInAllEvents) {
  const uint32_t stream = AddCore("i-a", 11, 0, 4);
  AddExecution(1, kBase);
  script_.Span("dmem_buf_copyin", kBase, kBase + 5, 1, 7,
               {{"mem_type", uint64_t{1}}, {"size", uint64_t{64}}});
  script_.Span("dmem_buf_copyout", kBase, kBase + 5, 2, 8,
               {{"mem_type", std::string("host")}, {"size", std::string("128")}});
  script_.Span("nrt_tensor_write", kBase, kBase + 5, 3, 9,
               {{"tensor_id", std::string("18446744073709551616")}});
  script_.Span("nrt_tensor_read", kBase, kBase + 5, 4, 10, {{"tensor_id", uint64_t{7}}});
  Close(stream);
  const Report report = ExportAndCheck();
  for (const auto& [name, types] : report.argument_types) EXPECT_THAT(types, SizeIs(1)) << name;
  std::map<std::string, std::map<std::string, std::string>> arguments;
  for (const Track& track : report.tracks) {
    for (const Slice& slice : track.slices) arguments[slice.name] = slice.arguments;
  }
  EXPECT_EQ(arguments["dmem_buf_copyin"]["mem_type"], "1");
  EXPECT_EQ(arguments["dmem_buf_copyout"]["mem_type_text"], "host");
  EXPECT_EQ(arguments["dmem_buf_copyout"]["size"], "128");
  EXPECT_EQ(arguments["nrt_tensor_write"]["tensor_id_text"], "18446744073709551616");
}

TEST_F(PftraceDerived, AFrameworksStepsHaveNoProcessOfTheirOwn) {
  const uint32_t file = AddFile("i-a", "node-1.pt.trace.json");
  script_.Complete("user_annotation", kBase, 0, 7,
                   {{"name", std::string("ProfilerStep#3"), KeyScope::kTop},
                    {"pid", uint64_t{4'711}, KeyScope::kTop},
                    {"dur_ns", uint64_t{100}, KeyScope::kTop}});
  script_.Complete("X", kBase + 10, 0, 7,
                   {{"name", std::string("plain"), KeyScope::kTop},
                    {"pid", uint64_t{4'711}, KeyScope::kTop},
                    {"dur_ns", uint64_t{10}, KeyScope::kTop}});
  Close(file);
  const Report report = ExportAndCheck();
  EXPECT_THAT(report.processes, ElementsAre("i-a-pid4711 (node-1.pt.trace.json)"));
  const Track* steps = Find(report, "node-1.pt.trace.json steps (derived)");
  ASSERT_THAT(steps->slices, SizeIs(1));
  EXPECT_EQ(steps->slices[0].name, "framework step 3");
  for (const Track& track : report.tracks) {
    for (const Slice& slice : track.slices) EXPECT_NE(slice.category, "X") << slice.name;
  }
  EXPECT_THAT(Export("chrome-json"), Not(HasSubstr("\"cat\":\"X\"")));
}

TEST_F(PftraceDerived, DistinguishesCountersOfOneNameById) {
  const uint32_t file = AddFile("i-a", "worker0.pt.trace.json");
  const auto count = [this](uint64_t at_ns, EventScript::Attributes values) {
    values.push_back({"name", std::string("queue"), KeyScope::kTop});
    values.push_back({"pid", uint64_t{4'100}, KeyScope::kTop});
    EventScript::Event event{"C", Phase::kCounter, at_ns};
    event.has_thread = false;
    event.attributes = std::move(values);
    script_.Add(event);
  };
  count(kBase, {{"AIC", uint64_t{719'201'510'900'040'202}}, {"AIV", uint64_t{0}}});
  count(kBase, {{"AIC", uint64_t{9}}, {"id", std::string("second"), KeyScope::kTop}});
  count(kBase, {});
  count(kBase + 10, {{"AIC", int64_t{-50}}});
  Close(file);
  const Report report = ExportAndCheck();
  EXPECT_THAT(report.processes, ElementsAre("i-a-pid4100 (worker0.pt.trace.json)"));
  EXPECT_THAT(Find(report, "queue AIC")->counter,
              ElementsAre(Pair(kBase, 719'201'510'900'040'202.0), Pair(kBase + 10, -50.0)));
  EXPECT_THAT(Find(report, "queue[second] AIC")->counter, ElementsAre(Pair(kBase, 9.0)));
  EXPECT_THAT(Find(report, "queue AIV")->counter, SizeIs(1));
  for (const Track& track : report.tracks) EXPECT_FALSE(track.is_thread) << "counters have no row";
  const std::string chrome = Export("chrome-json");
  EXPECT_THAT(chrome, HasSubstr("719201510900040202"));
  EXPECT_THAT(chrome, HasSubstr("queue[second]"));
}

TEST_F(PftraceDerived, MemoryInUseByCategory) {
  const uint32_t stream = AddCore("i-a", 11, 0, 4);
  const auto allocate = [&](uint64_t at_ns, uint64_t tracking, const std::string& usage,
                            uint64_t usage_total, uint64_t total) {
    script_.Span("nrt_dma_mem_alloc", at_ns, at_ns + 5, tracking, 7,
                 {{"hbm_idx", uint64_t{1}}, {"mla_idx", uint64_t{2}}, {"usage_type", usage}},
                 {{"total_bytes", total},
                  {"usage_type_total_bytes", usage_total},
                  {"return_code", uint64_t{0}}});
  };
  allocate(kBase, 1, "weights", 100, 100);
  allocate(kBase + 10, 2, "TENSORS", 50, 150);
  allocate(kBase + 20, 3, "weights", 300, 350);
  Close(stream);
  const Report report = ExportAndCheck();
  const auto values = [&](const std::string& name) {
    std::vector<std::pair<uint64_t, double>> values;
    for (const auto& [at_ns, value] :
         Find(report, "device 2 HBM 1 " + name + " (derived)")->counter) {
      values.emplace_back(at_ns - kBase, value);
    }
    return values;
  };
  EXPECT_THAT(values("total"), ElementsAre(Pair(5, 100), Pair(15, 150), Pair(25, 350)));
  EXPECT_THAT(values("weights"), ElementsAre(Pair(5, 100), Pair(25, 300)));
  EXPECT_THAT(values("tensors"), ElementsAre(Pair(15, 50)));
}

TEST_F(PftraceDerived, BandwidthOfTransfers) {
  const uint32_t stream = AddCore("i-a", 11, 0, 4);
  const uint64_t bin = kBase / 1'000'000 * 1'000'000;
  script_.Span("dmem_buf_copyin", bin, bin + 2'000'000, 1, 7, {{"size", uint64_t{4'000'000}}});
  script_.Span("dmem_buf_copyout", bin + 10, bin + 500, 2, 7, {{"size", uint64_t{1'000}}});
  Close(stream);
  const Report report = ExportAndCheck();
  EXPECT_THAT(Find(report, "gid4-nc0 host to device (derived)")->counter,
              ElementsAre(Pair(bin, 2e9), Pair(bin + 2'000'000, 0)));
  EXPECT_THAT(Find(report, "gid4-nc0 device to host (derived)")->counter,
              ElementsAre(Pair(bin, 1e6), Pair(bin + 1'000'000, 0)));
}

TEST_F(PftraceDerived, SamplesOfAHostAreCounters) {
  StreamIdentity identity;
  identity.agent_id = "agent-i-a";
  identity.worker.instance_id = "i-a";
  identity.worker.boot_id = "boot";
  identity.kind = StreamKind::kHost;
  identity.nc_idx = limits::kNoNcIdx;
  const uint32_t stream = source_.AddStream(identity);
  const auto sample = [&](std::string_view type, uint64_t at_ns, EventScript::Attributes values) {
    script_.Add(std::string(type), Phase::kCounter, at_ns, 0, 0, std::move(values));
  };
  sample(kHostCpuEventType, kBase, {{"cpu_id", std::string("average")}, {"util_percent", 12.5}});
  sample(kHostCpuEventType, kBase, {{"cpu_id", std::string("0")}, {"util_percent", 25.0}});
  sample(kHostMemoryEventType, kBase + 1'000,
         {{"used_bytes", uint64_t{1} << 40}, {"used_percent", 50.0}});
  Close(stream);
  ExportRequest request;
  request.filter.host_samples = true;
  const Report report = ExportAndCheck(request);
  EXPECT_THAT(report.processes, ElementsAre("i-a host"));
  EXPECT_THAT(Find(report, "CPU average")->counter, ElementsAre(Pair(kBase, 12.5)));
  EXPECT_THAT(Find(report, "CPU 0")->counter, ElementsAre(Pair(kBase, 25)));
  EXPECT_EQ(Find(report, "CPU 0")->axis, Find(report, "CPU average")->axis);
  EXPECT_NE(Find(report, "CPU 0")->axis, "");
  EXPECT_EQ(Find(report, "CPU 0")->parent, "CPU each");
  EXPECT_EQ(Find(report, "CPU average")->parent, "i-a host");
  EXPECT_THAT(Find(report, "memory used")->counter,
              ElementsAre(Pair(kBase + 1'000, 1'099'511'627'776.0)));
  EXPECT_THAT(Find(report, "memory used, share")->counter, ElementsAre(Pair(kBase + 1'000, 50)));
}

TEST_F(PftraceDerived, ProcessesAndCoresStandByRank) {
  Close(AddCore("i-a", 900, 0, 8), "span");
  Close(AddCore("i-a", 100, 1, 11), "span");
  Close(AddCore("i-a", 100, 0, 10), "span");
  Close(AddCore("i-z", 1, 0, 3), "span");
  Close(AddCore("i-b", 1, 0, -1), "span");
  const Report report = ExportAndCheck();
  EXPECT_THAT(report.processes, ElementsAre("i-z-pid1", "i-a-pid900", "i-a-pid100", "i-b-pid1"));
  std::vector<std::string> workers;
  for (const Track& track : report.tracks) {
    if (track.ranks.empty()) continue;
    workers.push_back(track.process + " " + track.ranks);
  }
  EXPECT_THAT(workers,
              ElementsAre("i-z-pid1 [gid3]", "i-a-pid900 [gid8]", "i-a-pid100 [gid10-11]"));
  EXPECT_EQ(Find(report, "gid8-nc0-tid7-neuron_rt")->parent, "worker gid08");
  EXPECT_EQ(Find(report, "nc0-tid7-neuron_rt")->parent, "i-b-pid1") << "nothing is known of it";
  EXPECT_LT(Find(report, "worker gid10")->rank, Find(report, "worker gid11")->rank);
}

// The names on the way from a track to its process, and in which order siblings stand.
TEST_F(PftraceDerived, AWorkersTracksStandBelowItInTheirOrder) {
  const uint32_t stream = AddCore("i-a", 11, 3, 4);
  AddExecution(1, kBase);
  script_.Span("kbl_exec_wait", kBase, kBase + 50, 900, 7, {{"exec_id", uint64_t{1}}});
  script_.Span("kbl_exec_wait", kBase + 10, kBase + 60, 901, 7, {{"exec_id", uint64_t{1}}});
  script_.Span("dmem_buf_copyin", kBase + 1, kBase + 100, 902, 8, {{"size", uint64_t{4'000}}});
  source_.stream(stream).losses = {
      {LossPlace::kSpool, LossReason::kFull, 4, false, kBase + 5, kBase + 6, "y"}};
  Close(stream);
  const Report report = ExportAndCheck();
  std::map<int32_t, std::string> names;
  for (const Track& track : report.tracks) {
    if (track.parent != "worker gid4") continue;
    EXPECT_TRUE(names.emplace(track.rank, track.name).second);
  }
  std::vector<std::string> order;
  for (const auto& [rank, name] : names) order.push_back(name);
  EXPECT_THAT(order, ElementsAre("gid4-nc3-tid7-neuron_rt", "gid4-nc3-tid7-neuron_rt (lane 2)",
                                 "gid4-nc3-tid8-neuron_rt", "gid4-nc3-tid7-core4-neuron_hw",
                                 "gid4-nc3-tid7-core5-neuron_hw", "gid4-nc3 steps (derived)",
                                 "gid4-nc3 host to device (derived)", "gid4-nc3-losses"));
  EXPECT_EQ(Find(report, "worker gid4")->parent, "i-a-pid11");
}

TEST_F(PftraceDerived, LevelsFollowGrouping) {
  AddExecution(1, kBase);
  Close(AddCore("i-a", 11, 0, 4));
  AddExecution(1, kBase);
  Close(AddCore("i-a", 11, 12, 5));
  const auto path = [&](const std::vector<std::string>& secondary, const std::string& name) {
    ExportRequest request;
    request.secondary_group = secondary;
    const Report report = ExportAndCheck(request);
    std::string names;
    for (std::string at = Find(report, name)->parent; !at.empty();) {
      names = at + "/" + names;
      at = Find(report, at)->parent;
    }
    return names;
  };
  EXPECT_EQ(path({}, "gid5-nc12-tid7-neuron_rt"), "i-a-pid11/worker gid5/");
  EXPECT_EQ(path({}, "gid5-nc12 steps (derived)"), "i-a-pid11/worker gid5/");
  EXPECT_EQ(path({"lnc_idx", "thread_id"}, "nc0-tid7-neuron_rt"), "i-a-pid11/nc00/");
  EXPECT_EQ(path({"instance_id", "lnc_idx"}, "i-a-nc12-core4-neuron_hw"), "i-a-pid11/i-a/nc12/");
  EXPECT_EQ(path({"thread_id", "lnc_idx"}, "tid7-nc12-neuron_rt"), "i-a-pid11/tid7/nc12/");
  EXPECT_EQ(path({"thread_id", "lnc_idx"}, "gid5-nc12 steps (derived)"), "i-a-pid11/");
  EXPECT_EQ(path({"thread_id"}, "tid7-neuron_rt"), "i-a-pid11/");
}

}  // namespace
}  // namespace neurontrace
