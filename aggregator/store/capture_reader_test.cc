// SPDX-License-Identifier: Apache-2.0
// What is stored of a capture is walked, summed and bound to ranks as it was put.
#include "aggregator/store/capture_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "aggregator/store/store_test_support.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;

TEST(StreamReader, WalksTheIndexFromATime) {
  const auto store = OpenInMemory();
  ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
  for (uint64_t sequence = 0; sequence < 4; ++sequence) {
    ReceivedChunk chunk = TestChunk(1, TestStream(0), sequence);
    if (sequence == 2) {
      chunk.foreign_stops = {{"cc_running"}, {{0, 5, chunk.header.first_timestamp_ns + 1}}};
    }
    PutOne(*store, chunk);
  }
  ReceivedChunk empty = TestChunk(1, TestStream(0), 4);
  empty.header.event_count = 0;
  empty.header.first_timestamp_ns = empty.header.last_timestamp_ns = 0;
  empty.header.end_of_stream = true;
  empty.columns.clear();
  PutOne(*store, empty);
  PutOne(*store, TestChunk(1, TestStream(1), 0));

  const StreamReader stream = store->OpenCapture(TestCaptureId(1)).Stream(0);
  EXPECT_THAT(IndexedSequences(stream.Index()), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(IndexedSequences(stream.Index(2'005)), ElementsAre(1, 2, 3));
  EXPECT_THAT(IndexedSequences(stream.Index(2'006)), ElementsAre(2, 3));

  const ChunkIndexIterator it = stream.Index(2'006);
  EXPECT_EQ(it.entry().first_timestamp_ns, 2'005u);
  EXPECT_EQ(it.entry().event_count, 10u);
  ForeignStops stops;
  ASSERT_TRUE(it.ReadForeignStops(stops).ok());
  EXPECT_THAT(stops.event_types, ElementsAre("cc_running"));
  EXPECT_THAT(stops.entries, ElementsAre(ForeignStops::Entry{0, 5, 2'006}));
  EXPECT_EQ(store->OpenCapture(TestCaptureId(1)).Streams()->front().last_timestamp_ns, 4'005u);
  EXPECT_EQ(store->OpenCapture(TestCaptureId(1)).Sum()->events, 50u);
}

TEST(CaptureReader, SumsEventsOfWorkersAndChunksOfAll) {
  const auto store = OpenInMemory();
  ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
  StreamIdentity host = TestStream(limits::kNoNcIdx);
  host.kind = StreamKind::kHost;
  host.worker = {.instance_id = "i-agent-a", .boot_id = "boot"};
  const auto put = [&](const StreamIdentity& stream, uint64_t sequence, uint64_t lost) {
    ReceivedChunk chunk = TestChunk(1, stream, sequence);
    chunk.header.events_before = sequence * 10;
    if (lost > 0) {
      chunk.header.losses = {{.place = LossPlace::kAgentQueue,
                              .reason = LossReason::kUnknown,
                              .events = lost,
                              .detail = "test"}};
    }
    PutOne(*store, chunk);
  };
  put(TestStream(0), 0, 0);
  put(TestStream(1), 0, 3);
  const auto before = store->OpenCapture(TestCaptureId(1)).Sum();
  put(host, 0, 0);
  put(host, 1, 5);
  const auto sum = store->OpenCapture(TestCaptureId(1)).Sum();
  ASSERT_TRUE(before.ok() && sum.ok());
  EXPECT_EQ(sum->chunks, 4u);
  EXPECT_EQ(sum->bytes, 2 * before->bytes);
  EXPECT_EQ(sum->events, 20u) << "hosts have samples";
  EXPECT_EQ(sum->events_lost, 3u);
  EXPECT_EQ(sum->events_expired, 0u);
}

TEST(CaptureReader, SumsOfAgentsDoNotRestart) {
  const auto store = OpenInMemory();
  ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
  for (uint32_t core = 0; core < 2; ++core) {
    ReceivedChunk chunk = TestChunk(1, TestStream(core), 0);
    chunk.header.losses = {{.place = LossPlace::kAgentQueue,
                            .reason = LossReason::kUnknown,
                            .events = UINT64_MAX - 100,
                            .detail = "test"}};
    PutOne(*store, chunk);
  }
  const auto sum = store->OpenCapture(TestCaptureId(1)).Sum();
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(sum->events_lost, UINT64_MAX);
}

TEST(CaptureReader, BindsRanksThatBecameKnownAfterTheChunks) {
  const auto store = OpenInMemory();
  ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
  ReceivedChunk chunk = TestChunk(1, TestStream(2), 0);
  chunk.header.rank_evidence = {{RankSource::kSlurm, 1, 8, ""}};
  PutOne(*store, chunk);
  WorkerRecord worker;
  worker.info.identity = TestStream(2).worker;
  worker.info.state = WorkerState::kIdle;
  worker.info.job = "llama";
  worker.info.cores = {{1, {{RankSource::kCommunicator, 34, 64, ""}}},
                       {2, {{RankSource::kCommunicator, 35, 64, ""}}}};
  ASSERT_TRUE(store->inventory().PutWorker(worker).ok());
  const auto streams = store->OpenCapture(TestCaptureId(1)).Streams().value();
  EXPECT_EQ(BestEvidence(streams.front().evidence)->worker_gid, 35);
  EXPECT_EQ(streams.front().job, "llama");
}

// Returns what a reader learns about a stream whose newest chunk and whose worker's agent have this
// evidence.
std::vector<RankEvidence> Bound(const std::vector<RankEvidence>& chunk_evidence,
                                const std::optional<std::vector<RankEvidence>>& agent_evidence) {
  const auto store = OpenInMemory();
  EXPECT_TRUE(store->captures().Put(TestCapture(1), true).ok());
  ReceivedChunk chunk = TestChunk(1, TestStream(2), 0);
  chunk.header.rank_evidence = chunk_evidence;
  PutOne(*store, chunk);
  WorkerRecord worker;
  worker.info.identity = TestStream(2).worker;
  worker.info.state = WorkerState::kIdle;
  if (agent_evidence) worker.info.cores = {CoreInfo{2, *agent_evidence}};
  EXPECT_TRUE(store->inventory().PutWorker(worker).ok());
  return store->OpenCapture(TestCaptureId(1)).Streams().value().front().evidence;
}

TEST(CaptureReader, TheNewestResolutionOfARankCounts) {
  const std::vector<RankEvidence> none;
  const std::vector<RankEvidence> slurm = {{RankSource::kSlurm, 1, 8, ""}};
  const std::vector<RankEvidence> configured = {{RankSource::kConfigured, 4, 8, ""}};
  const std::vector<RankEvidence> observed = {{RankSource::kCommunicator, 5, 8, ""}};
  EXPECT_EQ(Bound(configured, slurm), slurm) << "even if the evidence is worse";
  EXPECT_EQ(Bound(slurm, none), none) << "a claim that was withdrawn";
  EXPECT_EQ(Bound(none, slurm), slurm) << "a claim that came late";
  EXPECT_EQ(Bound(slurm, std::nullopt), slurm) << "a core without a report";
  EXPECT_EQ(Bound(slurm, observed), observed);
  EXPECT_EQ(Bound(observed, slurm), observed) << "an agent that was restarted may not remember";
  EXPECT_EQ(Bound(observed, none), observed);
}

}  // namespace
}  // namespace neurontrace
