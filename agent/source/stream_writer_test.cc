// SPDX-License-Identifier: Apache-2.0
// When chunks are closed, what their headers contain, and that a restart stores everything once.
#include "agent/source/stream_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/source/recording_sink.h"

namespace neurontrace {
namespace {

class StreamWriterTest : public ::testing::Test {
 protected:
  std::unique_ptr<StreamWriter> MakeWriter(uint32_t chunk_events = 4) {
    StreamWriter::Options options;
    options.chunk_events = chunk_events;
    return std::make_unique<StreamWriter>(capture_, stream_, clock_, sink_, metrics_, options);
  }
  const CachedShape& ShapeOf(std::string_view type) {
    keys_ = {{"n", ValueType::kUint, KeyScope::kData}};
    return shapes_.Find({.event_type = type, .phase = Phase::kInstant, .keys = keys_});
  }
  void Append(StreamWriter& writer, uint64_t position, uint64_t number) {
    const AttributeValue value{.bits = number};
    writer.Append(position, ShapeOf("t"), {.timestamp_ns = 1000 + number}, {&value, 1});
  }
  const ChunkHeader& header(size_t i) const { return sink_.entries[i].chunk.header; }
  static std::string Event(uint64_t number) {
    return R"({"event_type":"t","phase":"instant","data":{"n":)" + std::to_string(number) +
           R"(},"timestamp_ns":)" + std::to_string(1000 + number) + "}";
  }

  FakeClock clock_;
  RecordingSink sink_;
  AgentSourceMetrics metrics_;
  ShapeCache shapes_;
  std::vector<ShapeKey> keys_;
  CaptureId capture_ = *CaptureId::FromBytes("0123456789abcdef");
  StreamIdentity stream_{.agent_id = "a", .kind = StreamKind::kNeuronCore, .nc_idx = 2};
};

TEST_F(StreamWriterTest, ClosesChunksByCountAndNumbersThem) {
  auto writer = MakeWriter();
  for (uint64_t i = 0; i < 9; ++i) Append(*writer, 8, i);
  ASSERT_EQ(sink_.entries.size(), 2u);
  EXPECT_EQ(header(0).sequence, 0u);
  EXPECT_EQ(header(0).event_count, 4u);
  EXPECT_EQ(header(0).first_timestamp_ns, 1000u);
  EXPECT_EQ(header(0).last_timestamp_ns, 1003u);
  EXPECT_EQ(header(0).capture_id, capture_);
  EXPECT_EQ(header(0).stream, stream_);
  EXPECT_EQ(header(0).source_position, 8u);
  EXPECT_EQ(header(0).source_skip, 4u);
  EXPECT_EQ(header(1).sequence, 1u);
  EXPECT_EQ(header(1).source_skip, 8u);
  EXPECT_FALSE(header(1).end_of_stream);
}

TEST_F(StreamWriterTest, SendsRemarksWhenTheyChangeAndAllOfThemAtTheEnd) {
  auto writer = MakeWriter();
  Append(*writer, 8, 1);
  writer->AddRemark(8, RemarkKind::kNoTime, "element 1");
  writer->Flush(16);
  Append(*writer, 16, 2);
  writer->Flush(24);
  writer->SetRemark(RemarkKind::kRankContradiction, 1, {"RANK=1 against 2"});
  Append(*writer, 24, 3);
  writer->Flush(32);
  writer->SetRemark(RemarkKind::kRankContradiction, 0, {});
  writer->AddRemark(32, RemarkKind::kNoTime, "element 4");
  writer->End(40);
  ASSERT_EQ(sink_.entries.size(), 4u);
  const Remark first{.kind = RemarkKind::kNoTime, .count = 1, .details = {"element 1"}};
  const Remark both{.kind = RemarkKind::kNoTime, .count = 2, .details = {"element 1", "element 4"}};
  EXPECT_EQ(header(0).remarks, std::vector<Remark>{first});
  EXPECT_TRUE(header(1).remarks.empty()) << "nothing new";
  EXPECT_EQ(header(2).remarks.size(), 1u);
  EXPECT_EQ(header(3).remarks,
            (std::vector<Remark>{both, {.kind = RemarkKind::kRankContradiction, .count = 0}}));
}

// A file is read again from its beginning, so that its remarks are counted again, and once.
TEST_F(StreamWriterTest, CountsRemarksOfWhatIsReadAgainOnce) {
  auto writer = MakeWriter();
  Append(*writer, 0, 1);
  writer->AddRemark(0, RemarkKind::kNoTime, "element 0");
  writer->Flush(1);
  const StreamCursor cursor = CursorAfter(header(0));
  writer = MakeWriter();
  writer->Resume(cursor);
  Append(*writer, 0, 1);
  writer->AddRemark(0, RemarkKind::kNoTime, "element 0");
  writer->AddRemark(1, RemarkKind::kNoTime, "element 1");
  writer->End(2);
  ASSERT_EQ(header(1).remarks.size(), 1u);
  EXPECT_EQ(header(1).remarks[0].count, 2u);
}

TEST_F(StreamWriterTest, ClosesChunksByAge) {
  auto writer = MakeWriter();
  Append(*writer, 8, 1);
  writer->Tick(16);
  EXPECT_TRUE(sink_.entries.empty());
  clock_.AdvanceNs(limits::kChunkAgeMaxNs);
  writer->Tick(16);
  ASSERT_EQ(sink_.entries.size(), 1u);
  EXPECT_EQ(header(0).source_position, 16u);
  EXPECT_EQ(header(0).source_skip, 0u);
  clock_.AdvanceNs(limits::kChunkAgeMaxNs);
  writer->Tick(16);
  EXPECT_EQ(sink_.entries.size(), 1u) << "nothing to tell, no chunk";
}

TEST_F(StreamWriterTest, ClosesChunksBySize) {
  StreamWriter writer(capture_, stream_, clock_, sink_, metrics_);
  keys_ = {{"s", ValueType::kString, KeyScope::kData}};
  const CachedShape& shape = shapes_.Find({.event_type = "long", .keys = keys_});
  for (uint64_t i = 0; i < 40; ++i) {
    const std::string text = std::to_string(i) + std::string(60'000, 'x');
    const AttributeValue value{.text = text};
    writer.Append(8, shape, {.timestamp_ns = i}, {&value, 1});
  }
  EXPECT_GE(sink_.entries.size(), 4u);
  EXPECT_LE(header(0).columns_bytes, 4 * limits::kChunkBytesTarget);
}

TEST_F(StreamWriterTest, BeginsANewChunkWhenOneCanTakeNoMoreShapes) {
  StreamWriter writer(capture_, stream_, clock_, sink_, metrics_,
                      {.chunk_events = limits::kChunkEventsMax,
                       .chunk_columns_bytes = limits::kChunkColumnsBytesMax});
  for (uint32_t i = 0; i < limits::kChunkShapesMax + 10; ++i) {
    const std::string type = "type" + std::to_string(i);
    writer.Append(8, shapes_.Find({.event_type = type}), {.timestamp_ns = i}, {});
  }
  writer.End(16);
  uint64_t events = 0;
  for (const auto& entry : sink_.entries) events += entry.chunk.header.event_count;
  EXPECT_EQ(events, limits::kChunkShapesMax + 10u);
  EXPECT_GE(sink_.entries.size(), 2u);
  EXPECT_EQ(writer.counts().lost, 0u);
}

TEST_F(StreamWriterTest, CountsAnEventThatNoChunkCanHold) {
  auto writer = MakeWriter();
  keys_ = {{"s", ValueType::kString, KeyScope::kData}};
  const std::string text(limits::kStringBytesMax + 1, 'x');
  const AttributeValue value{.text = text};
  writer->Append(8, shapes_.Find({.event_type = "long", .keys = keys_}), {.timestamp_ns = 7},
                 {&value, 1});
  writer->End(16);
  ASSERT_EQ(sink_.Losses().size(), 1u);
  EXPECT_EQ(sink_.Losses()[0].place, LossPlace::kDecode);
  EXPECT_EQ(sink_.Losses()[0].reason, LossReason::kLimit);
  EXPECT_EQ(sink_.Losses()[0].events, 1u);
  EXPECT_EQ(sink_.Losses()[0].first_timestamp_ns, 7u);
}

TEST_F(StreamWriterTest, EndsWithEndOfStreamChunk) {
  auto writer = MakeWriter();
  writer->End(24);
  ASSERT_EQ(sink_.entries.size(), 1u);
  EXPECT_TRUE(header(0).end_of_stream);
  EXPECT_EQ(header(0).event_count, 0u);
  EXPECT_EQ(header(0).columns_bytes, 0u);
  EXPECT_TRUE(sink_.entries[0].chunk.columns.empty());
  EXPECT_FALSE(writer->finished());
  sink_.StoreAll();
  EXPECT_TRUE(writer->finished());
  Append(*writer, 24, 1);
  EXPECT_EQ(metrics_.events_after_end.load(), 1u);
}

TEST_F(StreamWriterTest, KnowsThatItsEndWasGivenUp) {
  const ChunkSink::Receipt given_up{ChunkSink::Fate::kLost, "refused", true};
  auto writer = MakeWriter(2);
  Append(*writer, 8, 1);
  Append(*writer, 16, 2);
  Append(*writer, 24, 3);
  sink_.Answer(0, given_up);
  EXPECT_FALSE(writer->counts().given_up) << "the next chunk's account still reports it";
  writer->End(32);
  sink_.Answer(1, given_up);
  EXPECT_TRUE(writer->counts().given_up);
  EXPECT_TRUE(writer->finished());
  EXPECT_EQ(writer->counts().lost, 3u);
}

TEST_F(StreamWriterTest, ReportsReplacedEnd) {
  auto writer = MakeWriter();
  Append(*writer, 8, 1);
  writer->End(16);
  sink_.Answer(0, {ChunkSink::Fate::kLost, "the stream says so"});
  EXPECT_FALSE(writer->counts().given_up);
  EXPECT_TRUE(writer->finished());
}

TEST_F(StreamWriterTest, TracksUndurableChunks) {
  auto writer = MakeWriter(2);
  EXPECT_EQ(writer->first_undurable_position(), std::nullopt);
  Append(*writer, 8, 1);
  Append(*writer, 16, 2);
  Append(*writer, 24, 3);
  Append(*writer, 32, 4);
  Append(*writer, 40, 5);
  EXPECT_EQ(writer->first_undurable_position(), 8u);
  sink_.Answer(1, true);
  EXPECT_EQ(writer->first_undurable_position(), 8u);
  sink_.Answer(0, true);
  EXPECT_EQ(writer->first_undurable_position(), 40u);
  writer->Tick(48);
  clock_.AdvanceNs(limits::kChunkAgeMaxNs);
  writer->Tick(48);
  sink_.StoreAll();
  EXPECT_EQ(writer->first_undurable_position(), std::nullopt);
  EXPECT_EQ(writer->counts().stored, 5u);
}

TEST_F(StreamWriterTest, SumsLossesOfOneKindWithinLimit) {
  auto writer = MakeWriter();
  for (uint64_t i = 1; i <= 3; ++i) {
    writer->AddLoss(8, {.place = LossPlace::kRuntimeRing,
                        .reason = LossReason::kOverwritten,
                        .events = i,
                        .first_timestamp_ns = 100 * i,
                        .last_timestamp_ns = 100 * i + 50});
  }
  for (uint32_t i = 0; i < limits::kLossesPerChunkMax + 5; ++i) {
    writer->AddLoss(8, {.place = LossPlace::kDecode,
                        .reason = LossReason::kLimit,
                        .events = 1,
                        .detail = std::to_string(i)});
  }
  writer->End(16);
  const std::vector<Loss> losses = sink_.Losses();
  ASSERT_EQ(losses.size(), limits::kLossesPerChunkMax);
  EXPECT_EQ(losses[0].events, 6u);
  EXPECT_EQ(losses[0].first_timestamp_ns, 100u);
  EXPECT_EQ(losses[0].last_timestamp_ns, 350u);
  uint64_t sum = 0;
  for (const Loss& loss : losses) sum += loss.events;
  EXPECT_EQ(sum, 6u + limits::kLossesPerChunkMax + 5);
}

// Reports of one suspension are one in a chunk; each chunk has what came since the one before.
TEST_F(StreamWriterTest, SendsSuspensionsWithTheNextChunkAndDropsThoseWithoutTimes) {
  auto writer = MakeWriter();
  const CaptureId other = *CaptureId::FromBytes("fedcba9876543210");
  writer->AddSuspension(8, {other, 100, 100});
  writer->AddSuspension(8, {other, 100, 300});
  writer->AddSuspension(8, {other, 0, 300});
  writer->AddSuspension(8, {other, 300, 200});
  EXPECT_EQ(metrics_.suspension_reports_dropped, 2u);
  writer->Flush(16);
  writer->AddSuspension(24, {other, 100, 400});
  for (uint64_t i = 0; i < limits::kSuspensionsPerChunkMax + 5; ++i) {
    writer->AddSuspension(24, {{}, 1'000 + 10 * i, 1'005 + 10 * i});
  }
  writer->End(32);
  writer->AddSuspension(40, {other, 100, 500});
  ASSERT_EQ(sink_.entries.size(), 2u);
  EXPECT_THAT(header(0).suspensions, ::testing::ElementsAre(Suspension{other, 100, 300}));
  EXPECT_THAT(header(1).suspensions, ::testing::SizeIs(limits::kSuspensionsPerChunkMax));
  EXPECT_THAT(header(1).suspensions, ::testing::Contains(Suspension{other, 100, 400}));
  EXPECT_THAT(header(1).losses, ::testing::IsEmpty());
  EXPECT_EQ(writer->counts().lost, 0u);
}

TEST_F(StreamWriterTest, CarriesTheAccountOfAllChunksBefore) {
  auto writer = MakeWriter(2);
  writer->AddLoss(8, {.place = LossPlace::kRuntimeRing, .events = 5, .detail = "a hole"});
  Append(*writer, 8, 1);
  Append(*writer, 8, 2);
  sink_.Answer(0, false, "no such capture");
  Append(*writer, 16, 3);
  writer->AddLoss(16, {.place = LossPlace::kRuntimeRing, .events = 1});
  Append(*writer, 24, 4);
  writer->End(32);
  EXPECT_EQ(header(0).events_before, 0u);
  EXPECT_THAT(header(0).losses_before, ::testing::IsEmpty());
  EXPECT_EQ(header(1).events_before, 2u);
  ASSERT_EQ(header(1).losses_before.size(), 1u);
  EXPECT_EQ(header(1).losses_before[0].events, 5u);
  EXPECT_EQ(header(1).losses_before[0].detail, "") << "words would make it large";
  EXPECT_EQ(header(2).events_before, 4u);
  ASSERT_EQ(header(2).losses_before.size(), 1u);
  EXPECT_EQ(header(2).losses_before[0].events, 6u);
  EXPECT_EQ(writer->counts().lost, 8u) << "six in losses, two in the refused chunk";
}

TEST_F(StreamWriterTest, ContinuesTheAccountOfItsCursor) {
  auto writer = MakeWriter(2);
  writer->Resume({.next_sequence = 7,
                  .source_position = 8,
                  .events_before = 900,
                  .losses_before = {
                      {.place = LossPlace::kTapBuffer, .events = 3},
                      {.place = LossPlace::kDecode, .reason = LossReason::kLimit, .events = 4}}});
  Append(*writer, 8, 1);
  writer->End(16);
  EXPECT_EQ(writer->counts().read, 905u) << "with those that no chunk could hold";
  EXPECT_EQ(writer->counts().lost, 7u);
  EXPECT_EQ(header(0).sequence, 7u);
  EXPECT_EQ(header(0).events_before, 900u);
  ASSERT_EQ(header(0).losses_before.size(), 2u);
  EXPECT_EQ(header(0).losses_before[0].events, 3u);
}

TEST_F(StreamWriterTest, CarriesTheMarkOfTheRecordsBeforeItsPosition) {
  auto writer = MakeWriter(2);
  writer->Resume({.next_sequence = 7, .source_position = 8, .sequence_mark = 30});
  writer->SetSequenceMark(0, 20);  // read once more, and reported
  writer->Tick(8);
  ASSERT_TRUE(sink_.entries.empty());
  Append(*writer, 8, 31);
  Append(*writer, 8, 32);  // closes a chunk within the record
  Append(*writer, 8, 33);
  writer->SetSequenceMark(8, 34);
  writer->Flush(16);
  writer->SetSequenceMark(16, 40);  // of a record that gave no row
  EXPECT_EQ(writer->first_undurable_position(), 8u);
  sink_.StoreAll();
  EXPECT_EQ(writer->first_undurable_position(), 16u) << "the mark itself has to be told";
  writer->End(24);
  ASSERT_EQ(sink_.entries.size(), 3u);
  EXPECT_EQ(header(0).sequence_mark, 30u);
  EXPECT_EQ(header(1).sequence_mark, 34u);
  EXPECT_EQ(header(2).sequence_mark, 40u);
}

TEST_F(StreamWriterTest, CarriesTheEvidenceKnownWhenAChunkIsClosed) {
  auto writer = MakeWriter(1);
  Append(*writer, 8, 1);
  writer->SetRankEvidence({{.source = RankSource::kCommunicator, .worker_gid = 35}});
  Append(*writer, 8, 2);
  EXPECT_TRUE(header(0).rank_evidence.empty());
  ASSERT_EQ(header(1).rank_evidence.size(), 1u);
  EXPECT_EQ(header(1).rank_evidence[0].worker_gid, 35);
}

// A source of ten records with three rows and one loss each, read by writers that die after any
// number of stored chunks: whatever the point, each row and each loss is stored once.
TEST_F(StreamWriterTest, StoresEverythingOnceOverARestart) {
  const auto read_all = [this](StreamWriter& writer) {
    for (uint64_t record = 0; record < 10; ++record) {
      for (uint64_t row = 0; row < 3; ++row) Append(writer, record * 8, record * 3 + row);
      writer.AddLoss(record * 8, {.place = LossPlace::kRuntimeRing, .events = 1});
    }
    writer.End(80);
  };
  std::vector<std::string> expected;
  for (uint64_t i = 0; i < 30; ++i) expected.push_back(Event(i));
  for (size_t stored = 0; stored <= 9; ++stored) {
    sink_.entries.clear();
    auto before = MakeWriter();
    read_all(*before);
    if (stored >= sink_.entries.size()) break;
    sink_.entries.resize(stored);
    sink_.StoreAll();
    auto after = MakeWriter();
    for (const StreamCursor& cursor : sink_.Cursors()) after->Resume(cursor);
    read_all(*after);
    EXPECT_EQ(sink_.Events(), expected) << stored;
    uint64_t lost = 0;
    for (const Loss& loss : sink_.Losses()) lost += loss.events;
    EXPECT_EQ(lost, 10u) << stored;
    for (size_t i = 0; i < sink_.entries.size(); ++i) EXPECT_EQ(header(i).sequence, i);
    EXPECT_TRUE(sink_.entries.back().chunk.header.end_of_stream);
  }
}

}  // namespace
}  // namespace neurontrace
