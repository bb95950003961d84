// SPDX-License-Identifier: Apache-2.0
// Goal: a framework's operation, the runtime's calls that it made and what the device ran of them
// are one chain, and nothing else is; what is not joined is counted. Method: hand-made events of
// both kinds, read in small batches.
#include "aggregator/derive/framework_links.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <optional>

#include "aggregator/derive/derive_fixture.h"
#include "aggregator/timeline/framework_names.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kThread = 4711;

class FrameworkLinksTest : public DeriveTest {
 protected:
  using Chains = std::vector<std::vector<std::string>>;

  void Operation(uint32_t stream, const std::string& name, EventScript::Value pid, uint64_t start,
                 uint64_t end, uint64_t thread = kThread) {
    script(stream).Add({"cpu_op",
                        Phase::kComplete,
                        kBase + start,
                        0,
                        thread,
                        {{"name", name, KeyScope::kTop},
                         {"pid", std::move(pid), KeyScope::kTop},
                         {"dur_ns", end - start, KeyScope::kTop}}});
  }
  void Call(uint32_t stream, const std::string& type, uint64_t start, uint64_t end,
            uint64_t thread = kThread, EventScript::Attributes about = {}) {
    script(stream).Span(type, kBase + start, kBase + end, next_tracking_id_++, thread,
                        std::move(about));
  }
  // nrt_execute, its preparation, and the device.
  void Execute(uint32_t stream, uint64_t exec_id, uint64_t start, uint64_t thread = kThread) {
    Call(stream, "nrt_execute", start, start + 50, thread);
    Call(stream, "kbl_exec_pre", start + 5, start + 10, thread, {{"exec_id", exec_id}});
    Running(stream, exec_id, 0, kBase + start + 20, kBase + start + 40);
  }

  // The chains of one kind with more than one record: what they are called, in their order.
  Chains Join(LinkKind kind) {
    std::optional<FrameworkLinks> links;
    std::map<uint64_t, std::vector<std::string>> chains;
    Read([&](const TimelineReader& reader) { links.emplace(reader.streams()); },
         [&](const TimelineBatch& batch) {
           for (const TimelineRecord* record : batch.records) {
             for (const LinkPoint& point : links->Of(*record)) {
               if (point.kind == kind) chains[point.id].push_back(NameOf(*record));
             }
           }
         });
    counts_ = links->counts();
    Chains joined;
    for (auto& [id, names] : chains) {
      if (names.size() > 1) joined.push_back(std::move(names));
    }
    return joined;
  }
  static std::string NameOf(const TimelineRecord& record) {
    const uint64_t* name = FindAttribute(record, KeyScope::kTop, "name");
    return std::string(name != nullptr ? record.text(*name) : record.start().event_type);
  }

  LinkCounts counts_;
};

TEST_F(FrameworkLinksTest, FromTheOperationToTheCallToTheDevice) {
  const uint32_t core = AddStream(Core("i-a", 11, 0));
  const uint32_t file = AddStream(Framework("i-a", 0));
  Operation(file, "aten::mm", uint64_t{11}, 0, 100);
  Execute(core, 5, 10);
  EXPECT_THAT(Join(LinkKind::kFrameworkCall), ElementsAre(ElementsAre("aten::mm", "nrt_execute")));
  EXPECT_THAT(Join(LinkKind::kExecution),
              ElementsAre(ElementsAre("nrt_execute", "kbl_exec_pre", "nc_exec_running")));
  EXPECT_EQ(counts_.operations, 1u);
  EXPECT_EQ(counts_.calls, 1u) << "what a call consists of is no call of the operation";
  EXPECT_EQ(counts_.calls_joined, 1u);
  EXPECT_EQ(counts_.executions, 1u);
  EXPECT_EQ(counts_.executions_unprepared, 0u);
  EXPECT_THAT(counts_.Warnings(), IsEmpty());
}

TEST_F(FrameworkLinksTest, TheInnermostOperationMadeTheCallAndACallAfterItIsTheOuterOnes) {
  const uint32_t core = AddStream(Core("i-a", 11, 0));
  const uint32_t file = AddStream(Framework("i-a", 0));
  Operation(file, "step", uint64_t{11}, 0, 1000);
  Operation(file, "outer", uint64_t{11}, 10, 500);
  Operation(file, "inner", "11", 20, 100);
  Call(core, "nrt_tensor_write", 30, 40);
  Call(core, "nrt_execute", 50, 60);
  Call(core, "nrt_tensor_read", 200, 210);
  Call(core, "nrt_tensor_read", 600, 610);
  Call(core, "nrt_tensor_read", 1000, 1010);  // begins when all have ended
  EXPECT_THAT(
      Join(LinkKind::kFrameworkCall),
      ElementsAre(ElementsAre("step", "nrt_tensor_read"), ElementsAre("outer", "nrt_tensor_read"),
                  ElementsAre("inner", "nrt_tensor_write", "nrt_execute")));
  EXPECT_EQ(counts_.calls, 5u);
  EXPECT_EQ(counts_.calls_joined, 4u);
  EXPECT_EQ(counts_.calls_outside, 1u);
  EXPECT_THAT(counts_.Warnings(), ElementsAre(HasSubstr("1 of 5 runtime calls")));
}

TEST_F(FrameworkLinksTest, ACallThatBeginsBeforeTheOperationOrEndsAfterItIsNotItsOwn) {
  const uint32_t core = AddStream(Core("i-a", 11, 0));
  const uint32_t file = AddStream(Framework("i-a", 0));
  Call(core, "nrt_execute", 0, 50);
  Operation(file, "late", uint64_t{11}, 10, 100);
  Call(core, "nrt_tensor_write", 90, 110);
  EXPECT_THAT(Join(LinkKind::kFrameworkCall), IsEmpty());
  EXPECT_EQ(counts_.calls, 2u);
  EXPECT_EQ(counts_.calls_outside, 1u);
  EXPECT_EQ(counts_.calls_crossing, 1u);
}

TEST_F(FrameworkLinksTest, TheSameThreadIdElsewhereIsAnotherThread) {
  const uint32_t here = AddStream(Core("i-a", 11, 0));
  const uint32_t instance = AddStream(Core("i-b", 11, 0));
  const uint32_t process = AddStream(Core("i-a", 12, 0));
  const uint32_t file = AddStream(Framework("i-a", 0));
  AddStream(Framework("i-b", 0));
  Operation(file, "op", uint64_t{11}, 0, 100);
  Operation(file, "another process", uint64_t{99}, 0, 100);
  Operation(file, "words", "Spans", 0, 100);
  Call(here, "nrt_execute", 10, 20, kThread + 1);
  Call(instance, "nrt_execute", 30, 40);
  Call(process, "nrt_execute", 50, 60);
  EXPECT_THAT(Join(LinkKind::kFrameworkCall), IsEmpty());
  EXPECT_EQ(counts_.operations, 1u);
  EXPECT_EQ(counts_.operations_elsewhere, 1u);
  EXPECT_EQ(counts_.operations_unnamed, 1u);
  EXPECT_EQ(counts_.calls_outside, 3u);
}

TEST_F(FrameworkLinksTest, WithoutAThreadNothingIsJoined) {
  const uint32_t core = AddStream(Core("i-a", 11, 0));
  const uint32_t file = AddStream(Framework("i-a", 0));
  Operation(file, "op", uint64_t{11}, 0, 100, 0);
  script(core).Add({.type = "nrt_execute",
                    .phase = Phase::kStart,
                    .timestamp_ns = kBase + 10,
                    .tracking_id = 9,
                    .has_thread = false});
  script(core).Add({.type = "nrt_execute",
                    .phase = Phase::kStop,
                    .timestamp_ns = kBase + 20,
                    .tracking_id = 9,
                    .has_thread = false});
  EXPECT_THAT(Join(LinkKind::kFrameworkCall), IsEmpty());
  EXPECT_EQ(counts_.calls_without_thread, 1u);
  EXPECT_THAT(counts_.Warnings(), ElementsAre(HasSubstr("1 name no thread")));
}

TEST_F(FrameworkLinksTest, OfTwoWorkersWithOneProcessIdNothingIsSaid) {
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  StreamIdentity other = Core("i-a", 1, 0);
  other.worker.container_id = "another";
  AddStream(std::move(other));
  const uint32_t file = AddStream(Framework("i-a", 0));
  Operation(file, "op", uint64_t{1}, 0, 100);
  Call(core, "nrt_execute", 10, 20);
  EXPECT_THAT(Join(LinkKind::kFrameworkCall), IsEmpty());
  EXPECT_EQ(counts_.operations_ambiguous, 1u);
}

TEST_F(FrameworkLinksTest, SequencesAreOfOneWorkerOverItsCores) {
  const uint32_t a = AddStream(Core("i-a", 11, 0));
  const uint32_t b = AddStream(Core("i-a", 11, 1));
  const uint32_t other = AddStream(Core("i-a", 12, 0));
  const auto call = [&](uint32_t stream, const std::string& type, uint64_t at, uint64_t sequence) {
    script(stream).Add({.type = type,
                        .phase = Phase::kStart,
                        .timestamp_ns = kBase + at,
                        .tracking_id = next_tracking_id_,
                        .nrta_seq_id = sequence});
    script(stream).Add({.type = type,
                        .phase = Phase::kStop,
                        .timestamp_ns = kBase + at + 5,
                        .tracking_id = next_tracking_id_++});
  };
  call(a, "schedule", 0, UINT64_MAX);
  call(b, "submit", 10, UINT64_MAX);
  call(other, "foreign", 20, UINT64_MAX);
  call(a, "zero", 30, 0);
  call(a, "done", 40, UINT64_MAX);
  EXPECT_THAT(Join(LinkKind::kSequence), ElementsAre(ElementsAre("schedule", "submit", "done")));
}

TEST_F(FrameworkLinksTest, ExecutionIdsMayBeAnythingAndAreOfOneCore) {
  const uint32_t a = AddStream(Core("i-a", 11, 0));
  const uint32_t b = AddStream(Core("i-a", 11, 1));
  Execute(a, UINT64_MAX, 0);
  Running(b, UINT64_MAX, 1, kBase + 25, kBase + 30);
  Call(a, "kbl_exec_pre", 200, 210, kThread, {{"exec_id", "12"}});
  Running(a, 12, 0, kBase + 220, kBase + 230);
  // Two preparations in one call: the second one's chain begins with itself.
  Call(b, "nrt_execute", 300, 400);
  Call(b, "kbl_exec_pre", 310, 320, kThread, {{"exec_id", uint64_t{1}}});
  Call(b, "kbl_exec_pre", 330, 340, kThread, {{"exec_id", uint64_t{2}}});
  Running(b, 2, 0, kBase + 350, kBase + 360);
  EXPECT_THAT(Join(LinkKind::kExecution),
              ElementsAre(ElementsAre("nrt_execute", "kbl_exec_pre", "nc_exec_running"),
                          ElementsAre("kbl_exec_pre", "nc_exec_running"),
                          ElementsAre("nrt_execute", "kbl_exec_pre"),
                          ElementsAre("kbl_exec_pre", "nc_exec_running")));
  EXPECT_EQ(counts_.executions, 4u);
  EXPECT_EQ(counts_.executions_unprepared, 1u);
}

TEST_F(FrameworkLinksTest, OfTooManyOpenOperationsTheOuterOnesAreForgottenAndCounted) {
  constexpr uint64_t kOperations = 100'000;
  const uint32_t core = AddStream(Core("i-a", 11, 0));
  const uint32_t file = AddStream(Framework("i-a", 0));
  for (uint64_t i = 0; i < kOperations; ++i) {
    Operation(file, "op", uint64_t{11}, i, 1'000'000 - i);
    if (i % 5'000 == 4'999) CloseChunk(file);
  }
  Call(core, "nrt_execute", 200'000, 200'010);
  Call(core, "nrt_tensor_read", 999'000, 999'010);  // in the outermost thousand alone
  EXPECT_THAT(Join(LinkKind::kFrameworkCall), ElementsAre(ElementsAre("op", "nrt_execute")));
  EXPECT_EQ(counts_.calls_outside, 1u);
  EXPECT_GT(counts_.operations_forgotten, kOperations - 2 * OpenSpans::kDepthMax);
  EXPECT_LT(counts_.operations_forgotten, kOperations);
  EXPECT_THAT(counts_.Warnings(), SizeIs(2));
}

TEST_F(FrameworkLinksTest, SpansThatEncloseNothingDoNotHideTheOneThatDoes) {
  OpenSpans open;
  const OpenSpans::Thread thread{1, 7};
  open.Add(thread, 0, {1'000, 1});
  for (uint64_t i = 1; i <= 20; ++i) open.Add(thread, i, {100 + i, 1 + i});
  EXPECT_EQ(open.Find(thread, 110, 120).innermost->chain, 21u);
  const OpenSpans::Place crossing = open.Find(thread, 115, 500);
  ASSERT_NE(crossing.innermost, nullptr);
  EXPECT_EQ(crossing.innermost->chain, 1u);
  EXPECT_TRUE(crossing.crosses);
  EXPECT_EQ(open.Find({1, 8}, 110, 120).innermost, nullptr);
}

TEST_F(FrameworkLinksTest, SpansOnVeryManyThreadsAreSweptOrForgotten) {
  OpenSpans open;
  for (uint64_t i = 0; i < OpenSpans::kOpenMax; ++i) open.Add({1, i}, i, {i + 1, 1});
  EXPECT_EQ(open.forgotten(), 0u) << "they had ended";
  const uint64_t now = 2 * OpenSpans::kOpenMax;
  for (uint64_t i = 0; i < OpenSpans::kOpenMax; ++i) open.Add({2, i}, now, {UINT64_MAX, 1});
  EXPECT_GT(open.forgotten(), 0u);
}

}  // namespace
}  // namespace neurontrace
