// SPDX-License-Identifier: Apache-2.0
// Goal: what the device and the runtime report becomes executions, each once, whatever the cores,
// chunks and repeated ids. Method: hand-made events, read in small batches.
#include "aggregator/derive/executions.h"

#include <gmock/gmock.h>

#include <optional>

#include "aggregator/derive/busy_share_sums.h"
#include "aggregator/derive/derive_fixture.h"
#include "aggregator/timeline/model_names.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ExecutionsTest : public DeriveTest {
 protected:
  std::vector<Execution> Find(TimelineOptions options = {}, size_t batch_records = 4) {
    std::vector<Execution> done;
    std::optional<ExecutionFinder> finder;
    streams_ = 0;
    Read(
        [&](const TimelineReader& reader) {
          finder.emplace(reader.streams(), fields_);
          streams_ = reader.streams().size();
        },
        [&](const TimelineBatch& batch) { finder->Take(batch, done); }, std::move(options),
        batch_records);
    finder->Finish(done);
    counts_ = finder->counts();
    return done;
  }

  ShapeFieldTable fields_;
  ExecutionCounts counts_;
  size_t streams_ = 0;
};

TEST_F(ExecutionsTest, BothPhysicalCoresAreOneExecution) {
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  Running(core, 5, 0, kBase, kBase + 100);
  Running(core, 5, 1, kBase + 20, kBase + 130);
  Running(core, 6, 0, kBase + 200, kBase + 300);
  Running(core, 6, 1, kBase + 340, kBase + 400);
  const auto done = Find();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].exec_id, 5u);
  EXPECT_EQ(done[0].number, 0u);
  EXPECT_EQ(done[0].parts, 2u);
  EXPECT_EQ(done[0].start_ns, kBase);
  EXPECT_EQ(done[0].end_ns, kBase + 130);
  EXPECT_EQ(done[0].busy_ns, 130u);
  EXPECT_EQ(done[1].number, 1u);
  EXPECT_EQ(done[1].end_ns - done[1].start_ns, 200u);
  EXPECT_EQ(done[1].busy_ns, 160u) << "nothing ran between the two";
  EXPECT_EQ(counts_.device, 2u);
}

TEST_F(ExecutionsTest, TruncatesLongModelName) {
  const std::string longest(kKeptNameBytesMax, 'm');
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  script(core).Span("kbl_exec_pre", kBase, kBase + 1, 50, 7,
                    {{"exec_id", uint64_t{5}}, {"model_name", longest + " v1"}});
  Running(core, 5, 0, kBase + 10, kBase + 20);
  script(core).Span("nc_exec_running", kBase + 30, kBase + 40, 51, 7,
                    {{"exec_id", uint64_t{6}}, {"model_name", longest + " v2"}});
  script(core).Span("nc_exec_running", kBase + 50, kBase + 60, 52, 7,
                    {{"exec_id", uint64_t{7}}, {"model_name", longest}});
  const auto done = Find();
  ASSERT_EQ(done.size(), 3u);
  for (const Execution& execution : done) EXPECT_EQ(execution.model_name, longest);
}

TEST_F(ExecutionsTest, ANameIsCutBetweenCharacters) {
  const std::string most(kKeptNameBytesMax - 3, 'm');
  EXPECT_EQ(KeptName(most + "\u20ac"), most + "\u20ac") << "256 bytes";
  EXPECT_EQ(KeptName(most + "\U0001f600"), most) << "four bytes do not fit into three";
  EXPECT_EQ(KeptName(most + "m\u20ac"), most + "m");
  EXPECT_EQ(KeptName(most + "mm\u20ac"), most + "mm");
  EXPECT_EQ(KeptName(most + "mmm\u20ac"), most + "mmm");
  EXPECT_EQ(KeptName(std::string(300, '\x80')), std::string(kKeptNameBytesMax, '\x80'));
  ModelNames models;
  models.Record(1, 2, most + "m\u20ac");
  EXPECT_EQ(models.Find(1, 2), most + "m");
}

TEST_F(ExecutionsTest, AnIdThatComesAgainIsAnotherExecution) {
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  Running(core, 5, 0, kBase, kBase + 100);
  Running(core, 5, 0, kBase + 100 + ExecutionFinder::kJoinNs + 1, kBase + 3 * kMs);
  const auto done = Find();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].parts, 1u);
  EXPECT_EQ(done[1].number, 1u);
}

TEST_F(ExecutionsTest, TheSameIdOnAnotherCoreIsAnotherExecution) {
  const uint32_t a = AddStream(Core("i-a", 1, 0));
  const uint32_t b = AddStream(Core("i-a", 1, 1));
  Running(a, 5, 0, kBase, kBase + 100);
  Running(b, 5, 2, kBase, kBase + 100);
  EXPECT_EQ(Find().size(), 2u);
}

TEST_F(ExecutionsTest, TheModelAndThePreparationComeFromTheRuntime) {
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  script(core).Span("kbl_exec_pre", kBase - 50, kBase - 10, 90, 7,
                    {{"exec_id", uint64_t{5}}, {"model_name", "decode.neff"}});
  Running(core, 5, 0, kBase, kBase + 100);
  const auto done = Find();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].model_name, "decode.neff");
  EXPECT_EQ(done[0].prepared_ns, kBase - 50);
}

TEST_F(ExecutionsTest, EachOfManyInOneBatchHasItsOwnPreparation) {
  constexpr uint64_t kCount = ExecutionFinder::kPreparedPerStream + 44;
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  for (uint64_t i = 0; i < kCount; ++i) {
    const uint64_t at = kBase + 1000 * i;
    script(core).Span("kbl_exec_pre", at, at + 10, 100'000 + i, 7,
                      {{"exec_id", i}, {"model_name", "m" + std::to_string(i)}});
    Running(core, i, 0, at + 50, at + 90);
  }
  const auto done = Find({}, 2 * kCount);
  ASSERT_EQ(done.size(), kCount);
  for (const Execution& execution : done) {
    EXPECT_EQ(execution.prepared_ns, execution.start_ns - 50) << *execution.exec_id;
    EXPECT_EQ(execution.model_name, "m" + std::to_string(*execution.exec_id));
  }
}

TEST_F(ExecutionsTest, OpensUnstoppedAndCountsUnstarted) {
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  script(core).Stop("nc_exec_running", kBase, 1000, 7);
  script(core).Start("nc_exec_running", kBase + 10, 1001, 7, {{"exec_id", uint64_t{8}}});
  script(core).Instant("tick", kBase + 500);
  const auto done = Find();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_TRUE(done[0].is_open);
  EXPECT_EQ(done[0].end_ns, kBase + 500);
  EXPECT_EQ(counts_.open, 1u);
  EXPECT_EQ(counts_.start_lost, 1u);
}

TEST_F(ExecutionsTest, OldNamesTextIdsAndSpansOverChunksAreTheSame) {
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  script(core).Start("device_exec", kBase, 1, 7, {{"exec_id", "12"}});
  CloseChunk(core);
  script(core).Stop("device_exec", kBase + 70, 1, 7);
  script(core).Span("nrt_execute", kBase + 80, kBase + 95, 2);
  const auto done = Find();
  ASSERT_EQ(done.size(), 2u);
  const size_t device = done[0].source == ExecutionSource::kDevice ? 0 : 1;
  EXPECT_EQ(done[device].exec_id, 12u);
  EXPECT_EQ(done[device].busy_ns, 70u);
  EXPECT_EQ(done[1 - device].source, ExecutionSource::kRuntime);
}

TEST_F(ExecutionsTest, BusyIsTheUnionInsideTheWindow) {
  const uint32_t a = AddStream(Core("i-a", 1, 0));
  const uint32_t b = AddStream(Core("i-a", 1, 1));
  Running(a, 1, 0, kBase, kBase + 100);
  Running(a, 2, 0, kBase + 50, kBase + 200);   // overlaps
  Running(a, 3, 0, kBase + 60, kBase + 70);    // inside
  Running(a, 4, 0, kBase + 300, kBase + 900);  // leaves the window
  script(b).Span("nrt_execute", kBase + 10, kBase + 30, 77);
  BusyShareSums sums(2, kBase + 10, kBase + 500);
  for (const Execution& execution : Find()) sums.Add(execution);
  const auto shares = sums.Finish();
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].busy_ns, 190u + 200u);
  EXPECT_DOUBLE_EQ(shares[0].Of(490), 390.0 / 490.0);
  EXPECT_EQ(shares[0].executions, 4u);
  EXPECT_EQ(shares[1].source, ExecutionSource::kRuntime);
  EXPECT_EQ(shares[1].busy_ns, 20u);
  EXPECT_EQ(shares[1].own_ns, std::nullopt);
}

// A core that waits for another one in a collective is as busy as that one.
TEST_F(ExecutionsTest, OwnWorkIsWithoutMeetings) {
  BusyShareSums sums(2, 100, 1'000);
  for (const uint32_t stream : {0u, 1u}) {
    sums.Add({.stream = stream, .start_ns = 50, .end_ns = 600});
    sums.AddRun(stream, 50, 600);
  }
  sums.AddMeeting(0, 150, 550);
  sums.AddMeeting(0, 200, 300);  // inside
  sums.AddMeeting(0, 500, 700);  // overlaps, and outlasts the run
  sums.AddMeeting(1, 550, 600);
  sums.AddMeeting(1, 990, 2'000);  // without a run
  const auto shares = sums.Finish();
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].busy_ns, shares[1].busy_ns);
  EXPECT_EQ(shares[0].own_ns, 50u);
  EXPECT_EQ(shares[1].own_ns, 450u);
  EXPECT_DOUBLE_EQ(*shares[1].OwnOf(900), 0.5);
}

TEST_F(ExecutionsTest, BusyBoundsIntervalsAndCountsLateOnes) {
  BusyShareSums sums(1, 0, UINT64_MAX);
  for (uint64_t i = 1; i <= 1000; ++i) sums.Add({.start_ns = i * 10, .end_ns = i * 10 + 5});
  sums.Add({.start_ns = 12, .end_ns = 14});
  const auto shares = sums.Finish();
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(shares[0].busy_ns, 5000u);
  EXPECT_EQ(shares[0].joined_late, 1u);
}

TEST_F(ExecutionsTest, EmptyInputGivesNothing) {
  AddStream(Core("i-a", 1, 0));
  EXPECT_THAT(Find(), IsEmpty());
}

}  // namespace
}  // namespace neurontrace
