// SPDX-License-Identifier: Apache-2.0
// Goal: each live stream sends a canary soon after it began and every minute then, as a chunk that
// nobody can take for data, and what is known of their way back is right.
#include "agent/source/source_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/source/recording_sink.h"
#include "agent/source/shape_cache.h"
#include "agent/source/stream_writer.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

class CanaryTest : public ::testing::Test {
 protected:
  std::unique_ptr<StreamWriter> MakeWriter() {
    return std::make_unique<StreamWriter>(capture_, stream_, clock_, sink_, metrics_);
  }
  // Time passes, as the writer's source lets it know of.
  void Pass(StreamWriter& writer, uint64_t ns, uint64_t position) {
    for (uint64_t passed = 0; passed < ns; passed += kNsPerSecond / 5) {
      clock_.AdvanceNs(kNsPerSecond / 5);
      writer.Tick(position);
    }
  }
  void Append(StreamWriter& writer, uint64_t position) {
    writer.Append(position, shapes_.Find({.event_type = "t", .phase = Phase::kInstant}),
                  {.timestamp_ns = 1000}, {});
  }
  const ChunkHeader& header(size_t i) const { return sink_.entries[i].chunk.header; }
  size_t Canaries() const {
    return static_cast<size_t>(
        std::count_if(sink_.entries.begin(), sink_.entries.end(),
                      [](const auto& entry) { return entry.chunk.header.is_canary(); }));
  }
  double AgeSeconds() const {
    const auto oldest = metrics_.canary_watch.oldest(clock_.MonotonicNs());
    return oldest ? static_cast<double>(oldest->age_ns) / kNsPerSecond : -1;
  }

  FakeClock clock_;
  RecordingSink sink_;
  AgentSourceMetrics metrics_;
  ShapeCache shapes_;
  CaptureId capture_ = *CaptureId::FromBytes("0123456789abcdef");
  StreamIdentity stream_{.agent_id = "a", .kind = StreamKind::kNeuronCore, .nc_idx = 2};
};

TEST_F(CanaryTest, SendsFirstCanarySoonThenOnePerMinute) {
  auto writer = MakeWriter();
  Pass(*writer, limits::kCanaryFirstNs, 0);
  ASSERT_EQ(sink_.entries.size(), 1u);
  EXPECT_EQ(header(0).canary_realtime_ns, clock_.RealtimeNs());
  EXPECT_EQ(header(0).event_count, 0u);
  EXPECT_EQ(header(0).sequence, 0u);
  sink_.StoreAll();
  Pass(*writer, 59 * kNsPerSecond, 0);
  EXPECT_EQ(Canaries(), 1u);
  Pass(*writer, kNsPerSecond, 0);
  EXPECT_EQ(Canaries(), 2u);
  EXPECT_EQ(metrics_.canaries.load(), 2u);
  EXPECT_EQ(metrics_.chunks.load(), 0u);
}

TEST_F(CanaryTest, DoesNotAdvanceSourcePosition) {
  auto writer = MakeWriter();
  Append(*writer, 8);
  Append(*writer, 8);
  writer->Tick(16);
  Pass(*writer, kNsPerSecond, 16);  // closes the first chunk
  Pass(*writer, kNsPerSecond - kNsPerSecond / 5, 24);
  Append(*writer, 24);
  Append(*writer, 24);
  writer->AddLoss(24, {.place = LossPlace::kRuntimeRing, .events = 5});
  writer->SetSequenceMark(24, 12);
  Pass(*writer, kNsPerSecond / 5, 32);  // the canary, while a chunk is open
  ASSERT_EQ(sink_.entries.size(), 2u);
  ASSERT_TRUE(header(1).is_canary());
  EXPECT_EQ(header(1).sequence, 1u);
  EXPECT_EQ(header(1).source_position, header(0).source_position);
  EXPECT_EQ(header(1).source_skip, header(0).source_skip);
  EXPECT_EQ(header(1).sequence_mark, 0u) << "of the chunk before, too";
  EXPECT_EQ(header(1).events_before, 2u);
  EXPECT_TRUE(header(1).losses.empty());
  writer->End(32);
  ASSERT_EQ(sink_.entries.size(), 3u);
  EXPECT_EQ(header(2).sequence, 2u);
  EXPECT_EQ(header(2).events_before, 2u);
  EXPECT_EQ(header(2).event_count, 2u);
  EXPECT_EQ(header(2).losses.size(), 1u);
}

TEST_F(CanaryTest, DoesNotDelaySource) {
  auto writer = MakeWriter();
  Append(*writer, 8);
  Pass(*writer, kNsPerSecond, 16);
  sink_.StoreAll();
  Pass(*writer, kNsPerSecond, 16);
  ASSERT_EQ(Canaries(), 1u);
  EXPECT_FALSE(writer->first_undurable_position());
  sink_.StoreAll();
  writer->End(16);
  EXPECT_FALSE(writer->finished());
  sink_.StoreAll();
  EXPECT_TRUE(writer->finished());
}

TEST_F(CanaryTest, LimitsToOneInFlightAndNoneWithoutRoom) {
  auto writer = MakeWriter();
  sink_.has_room = false;
  Pass(*writer, 5 * kNsPerSecond, 0);
  EXPECT_EQ(Canaries(), 0u);
  sink_.has_room = true;
  Pass(*writer, kNsPerSecond, 0);
  EXPECT_EQ(Canaries(), 1u);
  Pass(*writer, 300 * kNsPerSecond, 0);
  EXPECT_EQ(Canaries(), 1u);
  sink_.Answer(0, false, "refused");
  Pass(*writer, kNsPerSecond, 0);
  EXPECT_EQ(Canaries(), 2u);
}

TEST_F(CanaryTest, AgeAndRoundTripAreThoseOfTheWorstStream) {
  EXPECT_EQ(AgeSeconds(), -1);
  auto first = MakeWriter();
  stream_.nc_idx = 3;
  auto second = MakeWriter();
  EXPECT_FALSE(metrics_.canary_watch.round_trip_ns());
  clock_.AdvanceNs(2 * kNsPerSecond);
  first->Tick(0);
  second->Tick(0);
  clock_.AdvanceNs(3 * kNsPerSecond);
  sink_.Answer(0, true);
  EXPECT_EQ(AgeSeconds(), 5);  // of the second stream: none of it came back
  EXPECT_EQ(metrics_.canary_watch.round_trip_ns(), 3 * kNsPerSecond);
  clock_.AdvanceNs(kNsPerSecond);
  sink_.Answer(1, true);
  EXPECT_EQ(AgeSeconds(), 4);
  EXPECT_EQ(metrics_.canary_watch.round_trip_ns(), 4 * kNsPerSecond);
  second->End(0);
  EXPECT_EQ(metrics_.canary_watch.round_trip_ns(), 3 * kNsPerSecond);
  first.reset();
  EXPECT_EQ(AgeSeconds(), -1);
  EXPECT_FALSE(metrics_.canary_watch.round_trip_ns());
}

TEST_F(CanaryTest, ReportsStalledDataAfterThreeMinutes) {
  auto writer = MakeWriter();
  Pass(*writer, 180 * kNsPerSecond, 0);
  EXPECT_FALSE(DescribeStall(metrics_.canary_watch, clock_.MonotonicNs()));
  Pass(*writer, kNsPerSecond, 0);
  const auto stall = DescribeStall(metrics_.canary_watch, clock_.MonotonicNs());
  ASSERT_TRUE(stall);
  EXPECT_THAT(*stall, HasSubstr("no canary has been acknowledged for 181 s"));
  sink_.Answer(0, true);  // that one was sent long ago
  clock_.AdvanceNs(2 * kNsPerSecond);
  EXPECT_THAT(*DescribeStall(metrics_.canary_watch, clock_.MonotonicNs()), HasSubstr("no further"));
  writer->Tick(0);
  sink_.StoreAll();
  EXPECT_FALSE(DescribeStall(metrics_.canary_watch, clock_.MonotonicNs()));
}

TEST_F(CanaryTest, AnEndedStreamSendsNone) {
  auto writer = MakeWriter();
  writer->End(0);
  Pass(*writer, 100 * kNsPerSecond, 0);
  EXPECT_EQ(Canaries(), 0u);
  auto resumed = MakeWriter();
  resumed->Resume({.stream = stream_, .next_sequence = 4, .ended = true});
  Pass(*resumed, 100 * kNsPerSecond, 0);
  EXPECT_EQ(Canaries(), 0u);
  EXPECT_EQ(AgeSeconds(), -1);
}

}  // namespace
}  // namespace neurontrace
