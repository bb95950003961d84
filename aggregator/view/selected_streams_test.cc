// SPDX-License-Identifier: Apache-2.0
// Goal: a question about some streams reads these alone, and what a limit refuses is reported to
// the reader but never to the store as damage.
#include "aggregator/view/selected_streams.h"

#include <gmock/gmock.h>

#include <set>

#include "aggregator/view/view_test_support.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Remembers what was reported as unreadable.
class ReportingSource final : public FakeChunkSource {
 public:
  void ReportUnreadable(uint32_t stream, uint64_t sequence, const absl::Status&) override {
    reported.insert({stream, sequence});
  }
  std::set<std::pair<uint32_t, uint64_t>> reported;
};

// Lists nothing and counts everything.
class CountingExporter final : public Exporter {
 public:
  absl::Status Begin(const TimelineHeader& header) override {
    streams = header.streams.size();
    return absl::OkStatus();
  }
  absl::Status Write(const TimelineBatch& batch) override {
    records += batch.records.size();
    return absl::OkStatus();
  }
  absl::Status Finish(ExportSummary& summary) override {
    counts = summary.counts;
    return absl::OkStatus();
  }
  uint64_t bytes_written() const override { return 0; }

  size_t streams = 0;
  uint64_t records = 0;
  TimelineCounts counts;
};

class SelectedStreamsTest : public ::testing::Test {
 protected:
  // Adds a core with `chunks` chunks of one span each.
  void AddStream(uint32_t nc_idx, uint64_t chunks) {
    const uint32_t stream = source_.AddStream({.agent_id = "agent",
                                               .worker = {"i-a", "boot", 4711, 1, ""},
                                               .kind = StreamKind::kNeuronCore,
                                               .nc_idx = nc_idx},
                                              {{RankSource::kCommunicator, nc_idx, 64, "test"}});
    for (uint64_t i = 0; i < chunks; ++i) {
      script_.Span("work", 1'000 * i + 10, 1'000 * i + 20, i + 1);
      source_.AddChunk(stream, builder_);
    }
  }
  void Read(SelectedStreams& selected) {
    ExportRequest request;
    request.no_flows = true;
    const auto summary = RunExporter(selected, exporter_, request, false, nullptr);
    ASSERT_TRUE(summary.ok()) << summary.status();
  }

  ReportingSource source_;
  EventChunkBuilder builder_;
  EventScript script_{builder_};
  CountingExporter exporter_;
};

TEST_F(SelectedStreamsTest, ReadsTheChosenStreamsAlone) {
  for (uint32_t core = 0; core < 4; ++core) AddStream(core, 5);
  SelectedStreams selected(source_, source_.description(), {3, 1, 99}, 100);
  Read(selected);
  EXPECT_EQ(exporter_.streams, 2u) << "a number that the capture does not have is ignored";
  EXPECT_EQ(exporter_.records, 10u);
  EXPECT_EQ(selected.chunks_read(), 10u);
  EXPECT_EQ(source_.chunks_read(), 10u) << "of the other streams no chunk is read";
  EXPECT_EQ(selected.chunks_refused(), 0u);
}

TEST_F(SelectedStreamsTest, DescribesTheCaptureWithTheChosenStreams) {
  AddStream(0, 1);
  AddStream(1, 1);
  source_.description().name = "night run";
  SelectedStreams selected(source_, source_.description(), {1}, 100);
  const auto described = selected.Describe();
  ASSERT_TRUE(described.ok());
  EXPECT_EQ(described->name, "night run");
  ASSERT_EQ(described->streams.size(), 1u);
  EXPECT_EQ(described->streams[0].number, 1u);
}

TEST_F(SelectedStreamsTest, WithoutAStreamNothingIsRead) {
  AddStream(0, 3);
  SelectedStreams selected(source_, source_.description(), {}, 100);
  Read(selected);
  EXPECT_EQ(exporter_.records, 0u);
  EXPECT_EQ(source_.chunks_read(), 0u);
}

TEST_F(SelectedStreamsTest, RefusesChunksBeyondTheLimitAndReportsThemToTheReaderOnly) {
  AddStream(0, 5);
  SelectedStreams selected(source_, source_.description(), {0}, 2);
  Read(selected);
  EXPECT_EQ(selected.chunks_read(), 2u);
  EXPECT_EQ(source_.chunks_read(), 2u);
  EXPECT_EQ(selected.chunks_refused(), 3u);
  EXPECT_EQ(exporter_.counts.unreadable_chunks, 3u) << "the reader knows that some are missing";
  EXPECT_EQ(exporter_.records, 2u);
  EXPECT_THAT(source_.reported, IsEmpty()) << "they are not damaged";
}

TEST_F(SelectedStreamsTest, ReportsDamagedChunksToTheSource) {
  AddStream(0, 4);
  source_.Lose(0, 2);
  SelectedStreams selected(source_, source_.description(), {0}, 100);
  Read(selected);
  EXPECT_THAT(source_.reported, ElementsAre(std::pair<uint32_t, uint64_t>{0, 2}));
  EXPECT_EQ(selected.chunks_refused(), 0u);
  EXPECT_EQ(exporter_.records, 3u);
}

TEST_F(SelectedStreamsTest, ReadsTheChunksOfASample) {
  // One chunk a microsecond: stretches of two chunks, one in four of them.
  AddStream(0, 40);
  AddStream(1, 40);
  CaptureClocks clocks;
  SelectedStreams selected(source_, source_.description(), {0, 1}, 100);
  selected.ReadOnly({.from_ns = 0, .stretch_ns = 2'000, .every = 4}, clocks);
  Read(selected);
  EXPECT_EQ(selected.chunks_read(), 20u);
  EXPECT_EQ(exporter_.records, 20u);
  EXPECT_EQ(exporter_.counts.unreadable_chunks, 0u);
}

TEST(TimeSampleTest, IsEvenOverTheWindow) {
  // 100 streams of 1,000 chunks; a tenth of these may be read.
  const TimeSample sample = TimeSample::Of(5'000, 1'005'000, 100, 100'000, 10'000);
  EXPECT_EQ(sample.every, 16u);
  EXPECT_EQ(sample.stretch_ns, 2'000u) << "two chunks";
  uint64_t sampled = 0;
  for (uint64_t at = 0; at < 1'000; ++at) {
    if (sample.HasWhole(5'000 + at * 1'000, 5'000 + at * 1'000 + 999)) ++sampled;
  }
  EXPECT_EQ(sampled, 64u);
  EXPECT_TRUE(sample.Overlaps(0, 5'000));
  EXPECT_FALSE(sample.Overlaps(7'000, 36'999));
  EXPECT_TRUE(sample.Overlaps(7'000, 37'000));
  EXPECT_FALSE(sample.HasWhole(6'000, 37'000)) << "what is between two stretches was not read";
  EXPECT_TRUE(TimeSample().HasWhole(1, UINT64_MAX - 1));
  EXPECT_THAT(sample.Describe(), HasSubstr("one of every 16 stretches"));
}

TEST_F(SelectedStreamsTest, RefusalNamesTheChunkAndTheLimit) {
  AddStream(0, 1);
  SelectedStreams selected(source_, source_.description(), {0}, 0);
  std::string columns;
  const absl::Status refused = selected.ReadColumns(0, 0, columns);
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << "readers skip such a chunk";
  EXPECT_THAT(refused.message(), HasSubstr("one answer reads 0 chunks"));
}

}  // namespace
}  // namespace neurontrace
