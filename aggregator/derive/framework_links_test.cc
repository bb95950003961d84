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
#include "aggregator/derive/open_spans.h"
#include "aggregator/timeline/framework_names.h"
#include "lib/trace/framework_mapping.h"

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
    script(stream).Complete("cpu_op", kBase + start, 0, thread,
                            {{"name", name, KeyScope::kTop},
                             {"pid", std::move(pid), KeyScope::kTop},
                             {"dur_ns", end - start, KeyScope::kTop}});
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
    std::vector<FrameworkNames> names;
    Read(
        [&](const TimelineReader& reader) {
          EXPECT_GE(reader.begin_ns(), kBase) << "mapping files do not begin the timeline";
          FrameworkRoom room{.mapped = mapped_room_};
          for (const TimelineStream& stream : reader.streams()) {
            auto read = ReadFrameworkNames(source_, stream.description, room);
            ASSERT_TRUE(read.ok()) << read.status();
            names.push_back(*std::move(read));
            if (IsFrameworkMapping(stream.description.identity)) {
              EXPECT_FALSE(stream.is_in_window);
            }
          }
          links.emplace(reader.streams(), names);
        },
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

  // The stream of a mapping file, and an entry of it.
  uint32_t AddMapping(const std::string& instance, uint32_t pid) {
    StreamIdentity identity = Framework(instance, pid);
    identity.name = "runs/framework_mapping_20251121_101530_042.json";
    return AddStream(std::move(identity));
  }
  // Its time is long before all else: it is nothing's time.
  void Map(uint32_t stream, uint64_t nrta_seq_id, const std::string& numbers) {
    script(stream).Add({.type = std::string(kFrameworkMappingEventType),
                        .phase = Phase::kMetadata,
                        .timestamp_ns = kBase - 1'000 * kMs,
                        .attributes = {{std::string(kMappingSequenceKey), numbers}},
                        .nrta_seq_id = nrta_seq_id});
  }
  // An operation of process 11 with a number of the framework's.
  void Numbered(uint32_t stream, const std::string& name, EventScript::Value number, uint64_t start,
                uint64_t end, uint64_t thread = kThread) {
    script(stream).Complete("cpu_op", kBase + start, 0, thread,
                            {{"name", name, KeyScope::kTop},
                             {"pid", uint64_t{11}, KeyScope::kTop},
                             {"dur_ns", end - start, KeyScope::kTop},
                             {"Sequence number", std::move(number)}});
  }
  void Sequenced(uint32_t stream, const std::string& type, uint64_t nrta_seq_id, uint64_t start,
                 uint64_t end, uint64_t thread = kThread) {
    EventScript::Event event{.type = type,
                             .phase = Phase::kStart,
                             .timestamp_ns = kBase + start,
                             .tracking_id = next_tracking_id_++,
                             .thread_id = thread,
                             .nrta_seq_id = nrta_seq_id};
    script(stream).Add(event);
    event.phase = Phase::kStop;
    event.timestamp_ns = kBase + end;
    script(stream).Add(event);
  }

  LinkCounts counts_;
  size_t mapped_room_ = FrameworkNames::kMappedMax;
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
  EXPECT_EQ(counts_.calls, 1u) << "parts of a call are not calls";
  EXPECT_EQ(counts_.calls_joined, 1u);
  EXPECT_EQ(counts_.executions, 1u);
  EXPECT_EQ(counts_.executions_unprepared, 0u);
  EXPECT_THAT(counts_.Warnings(), IsEmpty());
}

TEST_F(FrameworkLinksTest, AnOperationMayBeWrittenAsABeginAndAnEnd) {
  const uint32_t framework = AddStream(Framework("i-a", 11));
  const uint32_t core = AddStream(Core("i-a", 11, 0));
  const auto begin = [&](const char* name, uint64_t at, uint64_t span) {
    script(framework).Add("op", Phase::kBegin, kBase + at, span, kThread,
                          {{"name", name, KeyScope::kTop}, {"pid", uint64_t{11}, KeyScope::kTop}});
  };
  begin("open", 0, 5);  // what it holds nobody knows
  begin("ended", 10, 6);
  script(framework).Add("op", Phase::kEnd, kBase + 100, 6, kThread);
  Call(core, "nrt_tensor_write", 20, 30);
  Call(core, "nrt_tensor_read", 120, 130);
  EXPECT_THAT(Join(LinkKind::kFrameworkCall),
              ElementsAre(ElementsAre("ended", "nrt_tensor_write")));
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
  EXPECT_THAT(counts_.Warnings(), ElementsAre(HasSubstr("1 have no thread")));
}

TEST_F(FrameworkLinksTest, AmbiguousProcessIdJoinsNothing) {
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

TEST_F(FrameworkLinksTest, ForgetsAndCountsOuterOperationsBeyondLimit) {
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

TEST_F(FrameworkLinksTest, MappingJoinsWhereTimeCannot) {
  const uint32_t core = AddStream(Core("i-a", 11, 0));
  const uint32_t file = AddStream(Framework("i-a", 0));
  const uint32_t mapping = AddMapping("i-a", 11);
  Map(mapping, 70, "[5, 6,null,-1]");
  Map(mapping, 71, "[6]");
  Numbered(file, "five", uint64_t{5}, 0, 10);
  Numbered(file, "six", "6", 20, 30);
  Numbered(file, "seven", uint64_t{7}, 32, 34);
  // On a thread of the runtime's own, with a part that is told apart by its sequence alone.
  Sequenced(core, "nrta_execute_schedule", 70, 100, 200, 9);
  Sequenced(core, "nrt_execute", 70, 110, 120, 9);
  Sequenced(core, "nrt_tensor_read", 71, 130, 140, 9);
  Sequenced(core, "nrt_tensor_read", 72, 300, 310, 9);
  EXPECT_THAT(Join(LinkKind::kFrameworkCall),
              ElementsAre(ElementsAre("five", "nrta_execute_schedule"),
                          ElementsAre("six", "nrta_execute_schedule", "nrt_tensor_read")));
  EXPECT_EQ(counts_.calls_mapped, 2u);
  EXPECT_EQ(counts_.mapped_added, 2u);
  EXPECT_EQ(counts_.mapped_confirmed + counts_.mapped_contradicted + counts_.mapped_unseen, 0u);
}

TEST_F(FrameworkLinksTest, MappingConfirmsOrRefinesTime) {
  const uint32_t core = AddStream(Core("i-a", 11, 0));
  const uint32_t file = AddStream(Framework("i-a", 0));
  const uint32_t mapping = AddMapping("i-a", 0);  // of the only worker
  Map(mapping, 70, "[5]");
  Map(mapping, 71, "[6]");
  Operation(file, "step", uint64_t{11}, 0, 1'000);
  Numbered(file, "aten::linear", uint64_t{5}, 10, 100);
  Numbered(file, "aten::t", uint64_t{5}, 20, 30);  // of the same number, and over
  Operation(file, "aten::addmm", uint64_t{11}, 40, 90);
  Sequenced(core, "nrt_execute", 70, 50, 60);
  Numbered(file, "aten::mm", uint64_t{6}, 200, 210);
  Sequenced(core, "nrt_execute", 71, 500, 510);  // submitted by what is over
  EXPECT_THAT(Join(LinkKind::kFrameworkCall), ElementsAre(ElementsAre("step", "nrt_execute"),
                                                          ElementsAre("aten::addmm", "nrt_execute"),
                                                          ElementsAre("aten::mm", "nrt_execute")));
  EXPECT_EQ(counts_.calls_mapped, 2u);
  EXPECT_EQ(counts_.mapped_confirmed, 2u);
  EXPECT_THAT(counts_.Warnings(), IsEmpty());
}

TEST_F(FrameworkLinksTest, ReportsMappingContradictedByTime) {
  const uint32_t core = AddStream(Core("i-a", 11, 0));
  const uint32_t file = AddStream(Framework("i-a", 0));
  const uint32_t mapping = AddMapping("i-a", 11);
  Map(mapping, 70, "[5]");
  Map(mapping, 71, "[6]");
  Map(mapping, 72, "[99]");
  Numbered(file, "before", uint64_t{5}, 0, 10);
  Operation(file, "around", uint64_t{11}, 20, 500);
  Sequenced(core, "nrt_execute", 70, 30, 40);
  Sequenced(core, "nrt_execute", 71, 50, 60);
  Numbered(file, "after", uint64_t{6}, 70, 80);  // no effect before its cause
  Sequenced(core, "nrt_execute", 72, 90, 95);    // its operation is in no file
  EXPECT_THAT(Join(LinkKind::kFrameworkCall),
              ElementsAre(ElementsAre("around", "nrt_execute", "nrt_execute", "nrt_execute")));
  EXPECT_EQ(counts_.calls_mapped, 3u);
  EXPECT_EQ(counts_.mapped_contradicted, 1u);
  EXPECT_EQ(counts_.mapped_unseen, 2u);
  EXPECT_THAT(counts_.Warnings(),
              ElementsAre(HasSubstr("1 of 3 runtime calls in mapping files lie inside another"),
                          HasSubstr("2 of 3 runtime calls in mapping files have no")));
}

TEST_F(FrameworkLinksTest, PrefersOperationOfCallingThread) {
  const uint32_t core = AddStream(Core("i-a", 11, 0));
  const uint32_t file = AddStream(Framework("i-a", 0));
  const uint32_t mapping = AddMapping("i-a", 11);
  Map(mapping, 70, "[5]");
  Map(mapping, 71, "[5,5]");
  Numbered(file, "forward", uint64_t{5}, 0, 10, 1);
  Numbered(file, "backward", uint64_t{5}, 20, 30, 2);
  Numbered(file, "backward inner", uint64_t{5}, 22, 28, 2);
  Sequenced(core, "nrt_execute", 70, 40, 50, 1);
  Sequenced(core, "nrt_tensor_read", 71, 60, 70, 3);
  EXPECT_THAT(Join(LinkKind::kFrameworkCall),
              ElementsAre(ElementsAre("forward", "nrt_execute"),
                          ElementsAre("backward inner", "nrt_tensor_read")));
}

TEST_F(FrameworkLinksTest, MappingsAreOfOneWorkerAndOfAKnownOne) {
  const uint32_t core = AddStream(Core("i-a", 11, 0));
  AddStream(Core("i-a", 12, 0));
  const uint32_t file = AddStream(Framework("i-a", 0));
  Map(AddMapping("i-a", 12), 70, "[5]");      // another's
  Map(AddMapping("i-a", 0), 70, "[5,6]");     // of two workers
  Map(AddMapping("i-b", 11), 70, "[5,6,7]");  // elsewhere
  Numbered(file, "op", uint64_t{5}, 0, 10);
  Sequenced(core, "nrt_execute", 70, 20, 30);
  EXPECT_THAT(Join(LinkKind::kFrameworkCall), IsEmpty());
  EXPECT_EQ(counts_.calls_mapped, 0u);
  EXPECT_EQ(counts_.mapped_elsewhere, 5u);
  EXPECT_THAT(counts_.Warnings(), ElementsAre(HasSubstr("1 of 1 runtime calls"),
                                              HasSubstr("5 operations in mapping files")));
}

TEST_F(FrameworkLinksTest, MoreMappedOperationsThanAreKeptAreCounted) {
  const uint32_t core = AddStream(Core("i-a", 11, 0));
  const uint32_t file = AddStream(Framework("i-a", 0));
  const uint32_t mapping = AddMapping("i-a", 11);
  Map(mapping, 70, "[5,6,7]");
  Map(mapping, 71, "[8]");
  Numbered(file, "six", uint64_t{6}, 0, 10);
  Numbered(file, "eight", uint64_t{8}, 1, 10);
  Sequenced(core, "nrt_execute", 70, 20, 30, 9);
  Sequenced(core, "nrt_execute", 71, 40, 50, 9);
  mapped_room_ = 2;
  EXPECT_THAT(Join(LinkKind::kFrameworkCall), ElementsAre(ElementsAre("six", "nrt_execute")));
  EXPECT_EQ(counts_.mapped_forgotten, 2u);
  EXPECT_THAT(counts_.Warnings(), testing::Contains(HasSubstr("there are too many")));
}

TEST_F(FrameworkLinksTest, EvictsFirstNumberBeyondLimit) {
  MappedOperations mapped;
  for (uint64_t number : {uint64_t{0}, uint64_t{1}}) mapped.Map(1, number, number);
  mapped.Settle();
  std::vector<MappedOperations::Cause> causes;
  for (uint64_t i = 0; i <= MappedOperations::kSeenMax; ++i)
    mapped.Observe(1, i, {i + 1, i, i + 1, 7});
  EXPECT_EQ(mapped.forgotten(), 1u);
  EXPECT_TRUE(mapped.Find(1, 0, {UINT64_MAX, UINT64_MAX, {}}, causes));
  EXPECT_THAT(causes, IsEmpty());
  EXPECT_TRUE(mapped.Find(1, 1, {UINT64_MAX, UINT64_MAX, {}}, causes));
  EXPECT_THAT(causes, SizeIs(1));
  EXPECT_FALSE(mapped.Find(1, 2, {UINT64_MAX, UINT64_MAX, {}}, causes));
  EXPECT_FALSE(mapped.Find(2, 0, {UINT64_MAX, UINT64_MAX, {}}, causes));
}

TEST_F(FrameworkLinksTest, LimitsNumbersPerSequence) {
  constexpr uint64_t kNumbers = MappedOperations::kPerSequenceMax + 100;
  MappedOperations mapped;
  for (uint64_t number = 0; number < kNumbers; ++number) {
    for (uint64_t sequence : {70, 71}) mapped.Map(1, sequence, number);
  }
  mapped.Map(1, 72, kNumbers);
  mapped.Settle();
  EXPECT_EQ(mapped.forgotten(), 2 * 100u);
  for (uint64_t i = 0; i <= kNumbers; ++i) mapped.Observe(1, i, {i + 1, i, i + 1, 7});
  std::vector<MappedOperations::Cause> causes;
  for (uint64_t sequence : {70, 71}) {
    EXPECT_TRUE(mapped.Find(1, sequence, {UINT64_MAX, UINT64_MAX, {}}, causes));
    ASSERT_THAT(causes, SizeIs(MappedOperations::kPerSequenceMax));
    EXPECT_EQ(causes.back().chain, MappedOperations::kPerSequenceMax);
  }
  EXPECT_TRUE(mapped.Find(1, 72, {UINT64_MAX, UINT64_MAX, {}}, causes));
  EXPECT_THAT(causes, SizeIs(1));
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
  EXPECT_EQ(open.forgotten(), 0u) << "the spans had ended";
  const uint64_t now = 2 * OpenSpans::kOpenMax;
  for (uint64_t i = 0; i < OpenSpans::kOpenMax; ++i) open.Add({2, i}, now, {UINT64_MAX, 1});
  EXPECT_GT(open.forgotten(), 0u);
}

}  // namespace
}  // namespace neurontrace
