// SPDX-License-Identifier: Apache-2.0
// What a stream's record keeps of its losses: its account, the gaps, and whose ranks it says.
#include "aggregator/store/stream_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/store/store_test_support.h"
#include "lib/trace/limits.h"
#include "lib/trace/suspension.h"

namespace neurontrace {
namespace {

// Adds a chunk with one loss from `first_ns` to `last_ns`.
void AddLossAt(uint64_t first_ns, uint64_t last_ns, StreamRecord& record) {
  ChunkHeader header;
  header.sequence = record.next_sequence;
  header.losses = {{.place = LossPlace::kRuntimeRing,
                    .events = 1,
                    .first_timestamp_ns = first_ns,
                    .last_timestamp_ns = last_ns,
                    .detail = "words are kept in the sum alone"}};
  header.losses_before = record.told;
  record.Add(header, 0, {});
}

TEST(StreamRecordGaps, AreCountedAndTheirUnionIsTheirLength) {
  StreamRecord record;
  AddLossAt(100, 200, record);
  AddLossAt(150, 250, record);  // half of it is new
  AddLossAt(160, 170, record);  // nothing is
  AddLossAt(300, 300, record);  // a moment, and no gap
  AddLossAt(0, 0, record);      // nobody knows when
  EXPECT_EQ(record.gaps_count, 3u);
  EXPECT_EQ(record.gaps_sum_ns, 150u);
  ASSERT_EQ(record.gaps.size(), 4u);
  EXPECT_EQ(record.gaps[2].first_timestamp_ns, 160u);
  EXPECT_TRUE(record.gaps[0].detail.empty());
  EXPECT_EQ(record.events_lost(), 5u);
}

TEST(StreamRecordGaps, TheShortestAreRemoved) {
  StreamRecord record;
  for (uint64_t i = 1; i <= 2 * limits::kGapsPerStreamMax; ++i) {
    AddLossAt(1'000 * i, 1'000 * i + i, record);
  }
  ASSERT_EQ(record.gaps.size(), limits::kGapsPerStreamMax);
  EXPECT_EQ(record.gaps.front().first_timestamp_ns, 1'000 * (limits::kGapsPerStreamMax + 1));
  EXPECT_EQ(record.gaps_count, 2 * limits::kGapsPerStreamMax);
}

// Adds a chunk with one report of a suspension.
void AddSuspensionAt(const Suspension& suspension, StreamRecord& record) {
  ChunkHeader header;
  header.sequence = record.next_sequence;
  header.suspensions = {suspension};
  header.losses_before = record.told;
  record.Add(header, 0, {});
}

// A suspension that is reported repeatedly, by one agent and the next, is one. It is no gap in
// which events were lost.
TEST(StreamRecordSuspensions, AreKeptOneForEachOtherCaptureAndAreNoLosses) {
  StreamRecord record{.identity = TestStream(0)};
  const CaptureId a = TestCaptureId(1);
  const CaptureId b = TestCaptureId(2);
  AddSuspensionAt({a, 100, 100}, record);
  AddSuspensionAt({a, 700, 900}, record);
  AddSuspensionAt({{}, 100, 200}, record);
  AddSuspensionAt({b, 950, 990}, record);
  AddSuspensionAt({{}, 300, 400}, record);
  EXPECT_THAT(record.suspensions,
              ::testing::UnorderedElementsAre(Suspension{a, 100, 900}, Suspension{{}, 100, 200},
                                              Suspension{{}, 300, 400}, Suspension{b, 950, 990}));
  EXPECT_EQ(record.suspensions[3].other, b);
  EXPECT_EQ(record.suspensions_count, 4u);
  EXPECT_TRUE(record.losses.empty());
  EXPECT_TRUE(record.told.empty());
  EXPECT_TRUE(record.gaps.empty());
  EXPECT_EQ(record.gaps_count, 0u);
  EXPECT_EQ(record.gaps_sum_ns, 0u);
  EXPECT_EQ(record.events_lost(), 0u);
  const auto again = DecodeStreamRecord(0, EncodeStreamRecord(record));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->suspensions, record.suspensions);
  EXPECT_EQ(again->suspensions_count, 4u);
}

TEST(StreamRecordSuspensions, AreLimitedAndCounted) {
  StreamRecord record;
  for (uint64_t i = 1; i <= 2 * limits::kSuspensionsPerStreamMax; ++i) {
    AddSuspensionAt({{}, 1'000 * i, 1'000 * i + i}, record);
  }
  EXPECT_EQ(record.suspensions.size(), limits::kSuspensionsPerStreamMax);
  EXPECT_EQ(record.suspensions_count, 2 * limits::kSuspensionsPerStreamMax);
  EXPECT_EQ(record.suspensions.front().begin_ns, 1'000 * (limits::kSuspensionsPerStreamMax + 1));
  AddSuspensionAt({{}, 0, 5}, record);
  AddSuspensionAt({{}, UINT64_MAX, 5}, record);
  EXPECT_EQ(record.suspensions_count, 2 * limits::kSuspensionsPerStreamMax) << "without times";
}

// Earlier builds reported a suspension as such a loss.
TEST(StreamRecordSuspensions, AreNotRecognisedByTheTextOfALoss) {
  StreamRecord record;
  ChunkHeader header;
  header.losses = {{.place = LossPlace::kRuntimeRing,
                    .reason = LossReason::kRefused,
                    .first_timestamp_ns = 100,
                    .last_timestamp_ns = 900,
                    .detail = "capture 01K had the worker"}};
  record.Add(header, 0, {});
  EXPECT_TRUE(record.suspensions.empty());
  EXPECT_EQ(record.gaps_count, 1u);
  EXPECT_EQ(record.gaps_sum_ns, 800u);
  EXPECT_EQ(record.losses, header.losses);
}

TEST(StreamRecordGaps, HoldWhatIsMissingBetweenChunks) {
  StreamRecord record;
  ChunkHeader header;
  header.event_count = 10;
  header.first_timestamp_ns = 100;
  header.last_timestamp_ns = 200;
  record.Add(header, 0, {});
  header.sequence = 5;
  header.events_before = 30;
  header.first_timestamp_ns = 700;
  header.last_timestamp_ns = 800;
  record.Add(header, 0, PrecedingGap{LossPlace::kSpool, LossReason::kFull});
  ASSERT_EQ(record.gaps.size(), 1u);
  EXPECT_EQ(record.gaps[0].place, LossPlace::kSpool);
  EXPECT_EQ(record.gaps[0].events, 20u);
  EXPECT_EQ(record.gaps[0].first_timestamp_ns, 200u);
  EXPECT_EQ(record.gaps[0].last_timestamp_ns, 700u);
  EXPECT_EQ(record.gaps_sum_ns, 500u);
  EXPECT_TRUE(record.Conserved());
}

TEST(StreamRecord, SumsLossesByPlaceAndReasonAndKeepsTheBestEvidenceFirst) {
  StreamRecord record;
  ChunkHeader header = TestChunk(1, TestStream(0), 0).header;
  header.rank_evidence = {{RankSource::kSlurm, 4, 8, "SLURM_PROCID=4"}};
  header.losses = {{LossPlace::kRuntimeRing, LossReason::kOverwritten, 3, false, 50, 60, ""}};
  record.Add(header, 100, {});
  header = TestChunk(1, TestStream(0), 1).header;
  header.rank_evidence = {{RankSource::kCommunicator, 5, 8, "comm"},
                          {RankSource::kSlurm, 4, 8, "SLURM_PROCID=4"}};
  header.losses = {{LossPlace::kRuntimeRing, LossReason::kOverwritten, 4, true, 40, 45, "more"},
                   {LossPlace::kTapBuffer, LossReason::kFull, UINT64_MAX, false, 0, 0, ""}};
  record.Add(header, 50, {});

  EXPECT_EQ(record.next_sequence, 2u);
  EXPECT_EQ(record.events, 20u);
  EXPECT_EQ(record.bytes, 150u);
  EXPECT_EQ(record.first_timestamp_ns, 5u);
  EXPECT_EQ(record.last_timestamp_ns, 2'005u);
  EXPECT_EQ(record.chunk_span_max_ns, 1'000u);
  ASSERT_EQ(record.losses.size(), 2u);
  EXPECT_EQ(record.losses[0],
            (Loss{LossPlace::kRuntimeRing, LossReason::kOverwritten, 7, true, 40, 60, "more"}));
  EXPECT_EQ(record.events_lost(), UINT64_MAX);  // saturated, not wrapped
  ASSERT_EQ(record.evidence.size(), 2u);
  EXPECT_EQ(record.evidence[0].source, RankSource::kCommunicator);
}

// Chunks 1 and 2 never come: 20 events, and a hole that chunk 2 would have reported.
TEST(StreamRecord, RecordsLossesMissingFromChunks) {
  StreamRecord record;
  record.Add(TestChunk(1, TestStream(0), 0).header, 100, {});
  ChunkHeader header = TestChunk(1, TestStream(0), 3).header;
  header.events_before = 30;
  header.losses_before = {{.place = LossPlace::kRuntimeRing, .events = 4}};
  record.Add(header, 100, PrecedingGap{LossPlace::kSpool, LossReason::kFull});
  EXPECT_EQ(record.next_sequence, 4u);
  EXPECT_EQ(record.events, 20u);
  EXPECT_EQ(record.captured, 40u);
  EXPECT_EQ(record.losses,
            (std::vector<Loss>{{LossPlace::kSpool, LossReason::kFull, 20, false, 1'005, 3'005, ""},
                               {.place = LossPlace::kRuntimeRing, .events = 4}}));
  EXPECT_TRUE(record.Conserved());

  header = TestChunk(1, TestStream(0), 4).header;
  header.events_before = 40;
  header.losses_before = {{.place = LossPlace::kRuntimeRing, .events = 4}};
  record.Add(header, 100, PrecedingGap{LossPlace::kSpool, LossReason::kFull});
  EXPECT_EQ(record.events_lost(), 24u) << "nothing was missing";
  EXPECT_EQ(record.Cursor().events_before, 50u);
}

TEST(StreamRecord, CountsAReplacedChunkOnce) {
  StreamRecord record;
  ChunkHeader header = TestChunk(1, TestStream(0), 0).header;
  header.event_count = 0;
  header.replaced =
      Loss{.place = LossPlace::kWireRefusal, .reason = LossReason::kRefused, .events = 10};
  record.Add(header, 100, {});
  header = TestChunk(1, TestStream(0), 1).header;
  header.events_before = 10;
  record.Add(header, 100, {});
  EXPECT_EQ(record.events, 10u);
  EXPECT_EQ(record.captured, 20u);
  EXPECT_EQ(record.events_lost(), 10u);
  EXPECT_TRUE(record.Conserved());
}

// An account that does not fit what came before reports a loss nobody has named.
TEST(StreamRecord, AttributesUnexplainedGapToStore) {
  StreamRecord record;
  ChunkHeader header = TestChunk(1, TestStream(0), 0).header;
  header.events_before = 7;
  record.Add(header, 100, {});
  ASSERT_EQ(record.losses.size(), 1u);
  EXPECT_EQ(record.losses[0].place, LossPlace::kStore);
  EXPECT_EQ(record.losses[0].reason, LossReason::kUnknown);
  EXPECT_EQ(record.losses[0].events, 7u);
}

// A claim that is withdrawn, because evidence that came late contradicts it, must not stay.
TEST(StreamRecord, TheClaimsAreThoseOfTheNewestChunk) {
  StreamRecord record;
  ChunkHeader header = TestChunk(1, TestStream(0), 0).header;
  header.rank_evidence = {{RankSource::kSlurm, 1, 8, "SLURM_PROCID=1"}};
  record.Add(header, 100, {});
  header.sequence = 1;
  header.events_before = record.captured;
  header.rank_evidence = {{RankSource::kCommunicator, 4, 8, "comm"}};
  record.Add(header, 100, {});
  ASSERT_EQ(record.evidence.size(), 1u);
  EXPECT_EQ(record.evidence[0].worker_gid, 4);
  // A report about chunks that an agent's disk lost has no claims, and withdraws none.
  ChunkHeader lost = header;
  lost.sequence = 2;
  lost.event_count = 0;
  lost.events_before = record.captured;
  lost.rank_evidence.clear();
  record.Add(lost, 100, {});
  EXPECT_EQ(record.evidence.size(), 1u);
  header.sequence = 3;
  header.events_before = record.captured;
  header.rank_evidence.clear();
  record.Add(header, 100, {});
  EXPECT_TRUE(record.evidence.empty());
}

TEST(StreamRecord, KeepsTheNewestRemarkOfEachKind) {
  StreamRecord record{.identity = TestStream(0)};
  ChunkHeader header = TestChunk(1, TestStream(0), 0).header;
  header.remarks = {{.kind = RemarkKind::kNoTime, .count = 1, .details = {"element 3"}}};
  record.Add(header, 100, {});
  header.sequence = 1;
  header.events_before = record.captured;
  header.remarks = {{.kind = RemarkKind::kNoTime, .count = 2, .details = {"element 3", "9"}},
                    {.kind = RemarkKind::kOpenSpan, .count = 1, .details = {}}};
  record.Add(header, 100, {});
  EXPECT_EQ(record.remarks, header.remarks);
  const auto decoded = DecodeStreamRecord(record.number, EncodeStreamRecord(record));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->remarks, header.remarks);
}

// Once a chunk says so, the stream's times are compared with nothing.
TEST(StreamRecord, KeepsThatItsTimesAreItsOwn) {
  StreamRecord record{.identity = TestStream(0)};
  ChunkHeader header = TestChunk(1, TestStream(0), 0).header;
  header.clock_domain = ClockDomain::kOwn;
  record.Add(header, 100, {});
  header.sequence = 1;
  header.events_before = record.captured;
  header.clock_domain = ClockDomain::kHostRealtime;
  record.Add(header, 100, {});
  EXPECT_EQ(record.clock_domain, ClockDomain::kOwn);
  const auto decoded = DecodeStreamRecord(record.number, EncodeStreamRecord(record));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->clock_domain, ClockDomain::kOwn);
  AddLossAt(100, 200, record);
  EXPECT_TRUE(record.gaps.empty());
  EXPECT_EQ(record.gaps_count, 0u);
  EXPECT_EQ(record.losses.back().first_timestamp_ns, 0u);
}

}  // namespace
}  // namespace neurontrace
