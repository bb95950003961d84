// SPDX-License-Identifier: Apache-2.0
// Goal: the rule reads each core's events once, in the order of their ends, with the ids that it
// compares, and knows what was lost and until when each stream lived. Method: hand-made captures,
// read in small batches.
#include "aggregator/insight/insight_feed.h"

#include <gmock/gmock.h>

#include <optional>

#include "aggregator/derive/derive_fixture.h"
#include "aggregator/insight/timeline_insight.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class InsightFeedTest : public DeriveTest {
 protected:
  std::vector<InsightEvent> Feed(InsightFeed::Facts facts = {}, TimelineOptions options = {},
                                 size_t held_max = InsightFeed::kHeldMax) {
    std::vector<InsightEvent> events;
    Read(
        [&](const TimelineReader& reader) {
          feed_.emplace(reader.streams(), fields_, std::move(facts), held_max);
        },
        [&](const TimelineBatch& batch) { feed_->Take(batch, events); }, std::move(options));
    feed_->Finish(events);
    return events;
  }
  static std::vector<InsightClass> Kinds(const std::vector<InsightEvent>& events) {
    std::vector<InsightClass> kinds;
    for (const InsightEvent& event : events) kinds.push_back(event.kind);
    return kinds;
  }
  static Loss LossAt(uint64_t events, uint64_t first_ns, uint64_t last_ns) {
    return {.place = LossPlace::kRuntimeRing,
            .reason = LossReason::kOverwritten,
            .events = events,
            .first_timestamp_ns = first_ns,
            .last_timestamp_ns = last_ns};
  }

  ShapeFieldTable fields_;
  std::optional<InsightFeed> feed_;
};

// A collective after its run would count as the next execution's.
TEST_F(InsightFeedTest, PassesACollectiveOnBeforeTheRunThatItEndsWith) {
  const uint32_t core = AddStream(Core("i-a", 7, 3));
  Running(core, 5, 0, kBase + 10 * kMs, kBase + 80 * kMs);
  script(core).Span("cc_running", kBase + 60 * kMs, kBase + 80 * kMs, 4, 7,
                    {{"exec_id", uint64_t{5}}, {"op_id", uint64_t{1}}});
  Running(core, 6, 0, kBase + 90 * kMs, kBase + 95 * kMs);
  script(core).Span("cc_running", kBase + 90 * kMs, kBase + 95 * kMs, 5, 7,
                    {{"exec_id", uint64_t{6}}, {"op_id", uint64_t{1}}});
  EXPECT_THAT(Kinds(Feed()), ElementsAre(InsightClass::kCollective, InsightClass::kRun,
                                         InsightClass::kCollective, InsightClass::kRun));
}

TEST_F(InsightFeedTest, PassesEachClassOnInTheOrderOfEnds) {
  const uint32_t core = AddStream(Core("i-a", 7, 3), Rank(11, 64));
  source_.stream(core).job = "llama";
  EventScript& events = script(core);
  const EventScript::Attributes named = {
      {"exec_id", uint64_t{5}}, {"model_id", uint64_t{9}}, {"model_name", "prefill"}};
  events.Span("nrt_execute", kBase, kBase + 90 * kMs, 1, 7,
              {{"model_id", uint64_t{9}}, {"model_name", "prefill"}});
  events.Span("kbl_exec_pre", kBase + 1 * kMs, kBase + 2 * kMs, 2, 7, named);
  Running(core, 5, 0, kBase + 10 * kMs, kBase + 80 * kMs);
  events.Span("cc_exec_barrier", kBase + 11 * kMs, kBase + 12 * kMs, 3);
  Collects(core, Operation(5, 17, 11), kBase + 20 * kMs, kBase + 30 * kMs);
  events.Span("kbl_exec_post", kBase + 81 * kMs, kBase + 82 * kMs, 4, 7,
              {{"exec_id", uint64_t{5}}, {"model_id", uint64_t{9}}});
  events.Instant("numerical_err", kBase + 83 * kMs);
  events.Span("nrt_tensor_read", kBase + 91 * kMs, kBase + 95 * kMs, 5);
  events.Span("nrt_tensor_free", kBase + 96 * kMs, kBase + 97 * kMs, 6);
  events.Span("nrt_load", kBase + 96 * kMs, kBase + 97 * kMs, 7);
  const auto read = Feed();
  EXPECT_THAT(
      Kinds(read),
      ElementsAre(InsightClass::kPrepare, InsightClass::kDeviceBarrier, InsightClass::kCollective,
                  InsightClass::kRun, InsightClass::kPost, InsightClass::kError,
                  InsightClass::kExecute, InsightClass::kTransferIo, InsightClass::kMemory));
  ASSERT_EQ(feed_->cores().size(), 1u);
  EXPECT_EQ(feed_->cores()[0].job, "llama");
  EXPECT_EQ(feed_->cores()[0].worker_gid, 11);
  EXPECT_EQ(feed_->cores()[0].nc_idx, 3u);
  EXPECT_EQ(read[2].op_id, 17u);
  EXPECT_EQ(read[2].exec_id, 5u);
  EXPECT_EQ(read[3].start_ns, kBase + 10 * kMs);
  EXPECT_EQ(read[3].end_ns, kBase + 80 * kMs);
  // One model, whether an event has its name or its id alone.
  ASSERT_EQ(feed_->models().size(), 1u);
  EXPECT_EQ(feed_->models()[0].name, "prefill");
  for (const size_t i : {size_t{0}, size_t{3}, size_t{4}, size_t{6}}) {
    EXPECT_EQ(read[i].model, feed_->models()[0].hash) << i;
  }
  EXPECT_THAT(feed_->Warnings(), IsEmpty());
}

// Two physical cores of a logical one arrive with the first and leave with the last.
TEST_F(InsightFeedTest, JoinsPhysicalCores) {
  const uint32_t core = AddStream(Core("i-a", 7, 0));
  Running(core, 5, 0, kBase, kBase + 50 * kMs);
  Running(core, 5, 1, kBase + 1'000, kBase + 51 * kMs);
  Collects(core, Operation(5, 1, 0), kBase + 10 * kMs, kBase + 20 * kMs);
  Collects(core, Operation(5, 1, 0), kBase + 11 * kMs, kBase + 21 * kMs);
  Collects(core, Operation(5, 1, 0), kBase + 30 * kMs, kBase + 40 * kMs);  // a later one
  const auto read = Feed();
  ASSERT_THAT(Kinds(read), ElementsAre(InsightClass::kCollective, InsightClass::kCollective,
                                       InsightClass::kRun));
  EXPECT_EQ(read[0].start_ns, kBase + 10 * kMs);
  EXPECT_EQ(read[0].end_ns, kBase + 21 * kMs);
  EXPECT_EQ(read[1].start_ns, kBase + 30 * kMs);
  EXPECT_EQ(read[2].end_ns, kBase + 51 * kMs);
}

TEST_F(InsightFeedTest, GroupsAreThoseOfCommunicators) {
  const uint32_t a = AddStream(Core("i-a", 7, 0), Rank(0, 4));
  const uint32_t b = AddStream(Core("i-b", 7, 0), Rank(1, 4));
  for (const uint32_t core : {a, b}) {
    Collects(core, {{"op_id", uint64_t{1}}, {"exec_id", uint64_t{1}}, {"stream_id", uint64_t{2}}},
             kBase, kBase + 1 * kMs);
    Collects(core, {{"op_id", uint64_t{1}}, {"exec_id", uint64_t{2}}, {"stream_id", uint64_t{3}}},
             kBase + 2 * kMs, kBase + 3 * kMs);
    Collects(core, {{"op_id", uint64_t{1}}, {"exec_id", uint64_t{3}}}, kBase + 4 * kMs,
             kBase + 5 * kMs);
  }
  // A barrier of these two alone.
  script(a).Span("enc_barrier", kBase + 6 * kMs, kBase + 7 * kMs, 70, 7,
                 {{"exec_id", uint64_t{4}}, {"peer_id", uint64_t{1}}});
  script(b).Span("enc_barrier", kBase + 6 * kMs, kBase + 7 * kMs, 71, 7,
                 {{"exec_id", uint64_t{4}}, {"peer_id", uint64_t{0}}});
  const auto read = Feed();
  ASSERT_EQ(read.size(), 8u);
  for (size_t i = 0; i < read.size(); i += 2) EXPECT_EQ(read[i].group, read[i + 1].group) << i;
  EXPECT_NE(read[0].group, read[2].group);
  EXPECT_EQ(read[4].group, 0u);  // the whole job
  EXPECT_NE(read[6].group, 0u);
}

TEST_F(InsightFeedTest, WithoutAStopAnEventIsOpenToTheEndOfItsStream) {
  const uint32_t core = AddStream(Core("i-a", 7, 0));
  script(core).Start("cc_running", kBase, 1, 7, Operation(5, 1, 0));
  Running(core, 4, 0, kBase + 1 * kMs, kBase + 9 * kMs);
  source_.stream(core).canary_ns = kBase + 5'000 * kMs;
  const auto read = Feed();
  ASSERT_EQ(read.size(), 2u);
  const InsightEvent& open = read[0].is_open ? read[0] : read[1];
  EXPECT_EQ(open.kind, InsightClass::kCollective);
  EXPECT_TRUE(open.is_open);
  EXPECT_EQ(open.end_ns, kBase + 9 * kMs);
  EXPECT_EQ(feed_->Conditions()[0].alive_at_ns, kBase + 5'000 * kMs);
}

TEST_F(InsightFeedTest, CountsTheLossesOfTheWindowAlone) {
  const uint32_t core = AddStream(Core("i-a", 7, 0));
  Running(core, 1, 0, kBase, kBase + 1 * kMs);
  StreamDescription& stream = source_.stream(core);
  stream.gaps = {LossAt(10, kBase + 2 * kMs, kBase + 3 * kMs),
                 LossAt(5, kBase + 200 * kMs, kBase + 300 * kMs)};
  stream.losses = {LossAt(15, kBase + 2 * kMs, kBase + 300 * kMs)};
  Feed({.window_start_ns = kBase, .window_end_ns = kBase + 100 * kMs});
  ASSERT_EQ(feed_->Losses()[0].size(), 1u);
  EXPECT_EQ(feed_->Losses()[0][0].events, 10u);
  EXPECT_EQ(feed_->Losses()[0][0].begin_ns, kBase + 2 * kMs);
  EXPECT_EQ(feed_->Losses()[0][0].end_ns, kBase + 3 * kMs);
  Feed();
  ASSERT_EQ(feed_->Losses()[0].size(), 2u);
  EXPECT_EQ(feed_->Losses()[0][1].events, 5u);
  // What the gaps do not have may have been at any time between the first and the last.
  stream.losses[0].events = 16;
  Feed({.window_start_ns = kBase, .window_end_ns = kBase + 100 * kMs});
  ASSERT_EQ(feed_->Losses()[0].size(), 1u);
  EXPECT_EQ(feed_->Losses()[0][0].events, 16u);
  EXPECT_EQ(feed_->Losses()[0][0].end_ns, kBase + 300 * kMs);
  // Without times, at any time at all.
  stream.losses[0].first_timestamp_ns = 0;
  Feed();
  EXPECT_EQ(feed_->Losses()[0][0].begin_ns, 0u);
  EXPECT_EQ(feed_->Losses()[0][0].end_ns, UINT64_MAX);
  // A suspended capture did not see the core.
  stream.losses.clear();
  stream.gaps.clear();
  stream.suspensions = {{.begin_ns = kBase + 1 * kMs, .end_ns = kBase + 2 * kMs}};
  Feed();
  ASSERT_EQ(feed_->Losses()[0].size(), 1u);
  EXPECT_TRUE(feed_->Losses()[0][0].is_unknown);
  EXPECT_EQ(feed_->Losses()[0][0].end_ns, kBase + 2 * kMs);
}

// Without an event a core is a core of the job all the same.
TEST_F(InsightFeedTest, RefusesCoresWithoutAnyEvents) {
  const uint32_t core = AddStream(Core("i-a", 7, 0), Rank(0, 4));
  const uint32_t lost = AddStream(Core("i-a", 8, 0), Rank(1, 4));
  AddStream(Core("i-a", 9, 0), Rank(2, 4));
  const uint32_t ended = AddStream(Core("i-a", 10, 0), Rank(3, 4));
  source_.stream(lost).losses = {LossAt(15, kBase, kBase + 1 * kMs)};
  source_.stream(ended).process_has_ended = true;
  Running(core, 1, 0, kBase, kBase + 1 * kMs);
  Feed();
  ASSERT_EQ(feed_->cores().size(), 2u);
  EXPECT_EQ(feed_->cores()[1].worker_gid, 1);
  EXPECT_EQ(feed_->Losses()[1].size(), 1u);
  ASSERT_EQ(feed_->silent().size(), 1u);
  EXPECT_EQ(feed_->silent()[0].worker_gid, 2);
}

TEST_F(InsightFeedTest, AllEventsLostIsARefusalForLosses) {
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t core = AddStream(Core("i-a", 7, i), Rank(i, 4));
    source_.stream(core).losses = {LossAt(15, kBase, kBase + 1 * kMs)};
  }
  std::optional<TimelineInsight> insight;
  Read([&](const TimelineReader& reader) { insight.emplace(reader.streams(), fields_); },
       [&](const TimelineBatch& batch) { insight->Take(batch); });
  const InsightReport report = insight->Finish();
  EXPECT_EQ(report.cores, 4u);
  EXPECT_EQ(report.cores_judged, 0u);
  ASSERT_EQ(report.refusals.size(), 1u);
  EXPECT_EQ(report.refusals[0].reason, RefusalReason::kLosses);
  EXPECT_THAT(report.refusals[0].cores, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(report.refusals[0].count, 60u);
}

// The whole capture is judged, however many executions it has.
TEST_F(InsightFeedTest, AnswerIsAboutAllExecutions) {
  constexpr uint64_t kExecutions = 1'000;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t core = AddStream(Core("i-a", 7, i));
    for (uint64_t n = 0; n < kExecutions; ++n) {
      Running(core, n + 1, 0, kBase + n * 10 * kMs, kBase + n * 10 * kMs + 5 * kMs);
    }
  }
  std::optional<TimelineInsight> insight;
  Read([&](const TimelineReader& reader) { insight.emplace(reader.streams(), fields_); },
       [&](const TimelineBatch& batch) { insight->Take(batch); }, {}, 256);
  const InsightReport report = insight->Finish();
  // The first run has no beginning, and the calls of the last one may still end: neither counts.
  EXPECT_EQ(report.executions, 4 * (kExecutions - 2));
  for (const Refusal& refusal : report.refusals) EXPECT_NE(refusal.reason, RefusalReason::kLimit);
}

// Two jobs have a rank 0 each, which is no contradiction of gid being a rank.
TEST_F(InsightFeedTest, GroupsAreThoseOfOneJob) {
  const uint32_t a = AddStream(Core("i-a", 7, 0), Rank(0, 4));
  const uint32_t b = AddStream(Core("i-b", 7, 0), Rank(0, 4));
  source_.stream(a).job = "llama";
  source_.stream(b).job = "mixtral";
  for (const uint32_t core : {a, b}) {
    Collects(core, Operation(1, 1, 0), kBase, kBase + 1 * kMs);
    Collects(core, Operation(2, 1, 0), kBase + 2 * kMs, kBase + 3 * kMs);
  }
  for (const InsightEvent& event : Feed()) EXPECT_EQ(event.group, 0u);
}

TEST_F(InsightFeedTest, KnowsWhichProcessesEnded) {
  const uint32_t a = AddStream(Core("i-a", 7, 0));
  const uint32_t b = AddStream(Core("i-a", 8, 0));
  for (const uint32_t core : {a, b}) Running(core, 1, 0, kBase, kBase + 1 * kMs);
  source_.stream(b).process_has_ended = true;
  Feed();
  const auto conditions = feed_->Conditions();
  ASSERT_EQ(conditions.size(), 2u);
  EXPECT_FALSE(conditions[0].has_ended);
  EXPECT_TRUE(conditions[1].has_ended);
  EXPECT_FALSE(conditions[1].ended_orderly);
  EXPECT_EQ(conditions[1].ended_at_ns, kBase + 1 * kMs);
  source_.stream(b).has_closed_runtime = true;
  Feed();
  EXPECT_TRUE(feed_->Conditions()[1].ended_orderly);
}

// Streams without the name of a job: worlds of two sizes are two jobs, and never one group. One
// process id of two workers of an instance is two processes.
TEST_F(InsightFeedTest, DistinguishesJobsAndProcesses) {
  StreamIdentity twin = Core("i-a", 7, 0);
  twin.worker.container_id = "other";
  for (const uint32_t core :
       {AddStream(Core("i-a", 7, 0), Rank(0, 4)), AddStream(std::move(twin), Rank(0, 8)),
        AddStream(Framework("i-a", 7))}) {
    Running(core, 1, 0, kBase, kBase + 1 * kMs);
  }
  Feed();
  ASSERT_EQ(feed_->cores().size(), 2u);
  EXPECT_NE(feed_->cores()[0].job, feed_->cores()[1].job);
  EXPECT_FALSE(feed_->cores()[0].has_job_name);
  EXPECT_NE(feed_->cores()[0].process, feed_->cores()[1].process);
  EXPECT_EQ(feed_->cores()[1].process & UINT32_MAX, 7u);
}

TEST_F(InsightFeedTest, WarnsOfALimit) {
  const uint32_t core = AddStream(Core("i-a", 7, 0));
  for (uint64_t i = 0; i < 8; ++i) {
    script(core).Start("kbl_exec_pre", kBase + i, i + 1, 7, {{"exec_id", i}});
  }
  const auto read = Feed({}, {}, 2);
  EXPECT_EQ(read.size(), 8u);
  ASSERT_EQ(feed_->Warnings().size(), 1u);
  EXPECT_THAT(feed_->Warnings()[0], HasSubstr("more than 2 overlapped"));
}

}  // namespace
}  // namespace neurontrace
