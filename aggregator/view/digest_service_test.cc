// SPDX-License-Identifier: Apache-2.0
// The digests of a store, from its chunks to the answers of views.
#include "aggregator/view/digest_service.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>

#include "aggregator/store/store_test_support.h"
#include "aggregator/timeline/event_script.h"
#include "aggregator/view/capture_views.h"
#include "lib/trace/columns_compression.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class DigestServiceTest : public ::testing::Test, private ViewClocks {
 protected:
  static constexpr uint64_t kChunks = 40;

  void SetUp() override {
    record_ = TestCapture(1);
    record_.state = CaptureState::kComplete;
    ASSERT_TRUE(store_->captures().Put(record_, true).ok());
    EventChunkBuilder builder;
    EventScript script(builder);
    for (uint64_t sequence = 0; sequence < kChunks; ++sequence) {
      ReceivedChunk chunk = TestChunk(1, TestStream(0), sequence);
      for (uint64_t i = 0; i < 50; ++i) {
        const uint64_t at_ns = 1'000'000 + sequence * 1'000 + i * 10;
        script.Span("nrt_execute", at_ns, at_ns + 5, sequence * 50 + i + 1, 7);
      }
      const std::string columns = builder.Finish().bytes;
      chunk.header.event_count = 100;
      chunk.header.first_timestamp_ns = 1'000'000 + sequence * 1'000;
      chunk.header.last_timestamp_ns = chunk.header.first_timestamp_ns + 495;
      chunk.header.columns_bytes = static_cast<uint32_t>(columns.size());
      chunk.columns = CompressColumns(columns);
      ASSERT_EQ(PutOne(*store_, chunk).outcome, PutOutcome::kStored);
    }
  }

  std::unique_ptr<CaptureViews> Views(uint64_t chunks_max, uint64_t exact_chunks_max) {
    return std::make_unique<CaptureViews>(
        CaptureViews::Deps{.store = *store_, .clocks = *this, .clock = clock_}, chunks_max,
        exact_chunks_max);
  }
  std::string Spans(uint64_t exact_chunks_max, uint64_t chunks_max = 1'000) {
    ViewRequest request;
    request.pixels = 16;
    const auto answer = Views(chunks_max, exact_chunks_max)->Spans(record_, request, {});
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or("");
  }
  absl::StatusOr<CaptureClocks> ClocksOf(const CaptureRecord&) override { return clocks_; }

  std::unique_ptr<Store> store_ = OpenInMemory();
  CaptureRecord record_;
  CaptureClocks clocks_;
  FakeClock clock_;
  prometheus::Registry registry_;
};

TEST_F(DigestServiceTest, ViewsUseDigestsOfTheStore) {
  EXPECT_THAT(Spans(/*exact_chunks_max=*/0), HasSubstr("\"digested_chunks\":0"));
  DigestService service({.store = *store_, .registry = registry_});
  service.RunPass();
  const std::string digested = Spans(/*exact_chunks_max=*/0);
  EXPECT_THAT(digested, HasSubstr("\"digested_chunks\":40"));
  EXPECT_THAT(digested, HasSubstr("\"events\":\"2000\""));
  EXPECT_THAT(digested, HasSubstr("\"cut\":null"));
  // A window of few chunks is read as ever.
  EXPECT_THAT(Spans(limits::kViewExactChunksMax), HasSubstr("\"digested_chunks\":0"));
}

TEST_F(DigestServiceTest, ALargeCaptureIsNotCut) {
  EXPECT_THAT(Spans(/*exact_chunks_max=*/0, /*chunks_max=*/10), HasSubstr("more than 10 chunks"));
  DigestService service({.store = *store_, .registry = registry_});
  service.RunPass();
  const std::string digested = Spans(/*exact_chunks_max=*/0, /*chunks_max=*/10);
  EXPECT_THAT(digested, HasSubstr("\"events\":\"2000\""));
  EXPECT_THAT(digested, Not(HasSubstr("more than 10 chunks")));
}

TEST_F(DigestServiceTest, EveryCountOfALargeCaptureIsComplete) {
  const auto held = Views(/*chunks_max=*/10, /*exact_chunks_max=*/10);
  CaptureViews& views = *held;
  ViewRequest request;
  request.query = "name:nrt_execute";
  request.limit = 3;
  EXPECT_THAT(*views.Search(record_, request, {}), HasSubstr("\"complete\":false"));
  EXPECT_THAT(*views.Summary(record_, request, {}), HasSubstr("\"complete\":false"));
  EXPECT_THAT(*views.Heat(record_, request, {}), HasSubstr("\"complete\":false"));
  DigestService(DigestService::Deps{*store_, registry_}).RunPass();
  const std::string found = *views.Search(record_, request, {});
  EXPECT_THAT(found, HasSubstr("\"total\":\"2000\",\"ranks\":1,"));
  EXPECT_THAT(found, HasSubstr("\"complete\":true"));
  EXPECT_THAT(found, HasSubstr("\"next\":\"3\""));
  EXPECT_THAT(found, HasSubstr("\"digested_chunks\":40"));
  request.query = "name:absent";
  EXPECT_THAT(*views.Search(record_, request, {}), HasSubstr("{\"hits\":[],\"next\":\"\""));
  request.query.clear();
  const std::string summed = *views.Summary(record_, request, {});
  EXPECT_THAT(summed, HasSubstr("\"events\":\"2000\""));
  EXPECT_THAT(summed, HasSubstr("\"complete\":true"));
  EXPECT_THAT(*views.Heat(record_, request, {}), HasSubstr("\"complete\":true"));
}

// The digests count at the runtime's times, the list is read by the device's, which is earlier.
TEST_F(DigestServiceTest, ACountedSearchListsHitsThatADevicesClockMovesForward) {
  constexpr uint64_t kFirstNs = 1'000'000'000;  // by the runtime
  constexpr uint64_t kEarlierNs = DeviceTimes::kShiftMaxNs - 1'000;
  constexpr uint64_t kDeviceNs = 5'000'000'000;  // what the device's counter shows then
  EventChunkBuilder builder;
  EventScript script(builder);
  for (uint64_t sequence = 0; sequence < kChunks; ++sequence) {
    ReceivedChunk chunk = TestChunk(1, TestStream(1), sequence);
    for (uint64_t i = sequence * 50; i < sequence * 50 + 50; ++i) {
      script.Instant("hw_notify", kFirstNs + i * 1'000, 0, 7,
                     {{"nc_timestamp_ns", kDeviceNs + i * 1'000}});
    }
    const std::string columns = builder.Finish().bytes;
    chunk.header.event_count = 50;
    chunk.header.first_timestamp_ns = kFirstNs + sequence * 50'000;
    chunk.header.last_timestamp_ns = chunk.header.first_timestamp_ns + 49'000;
    chunk.header.columns_bytes = static_cast<uint32_t>(columns.size());
    chunk.columns = CompressColumns(columns);
    ASSERT_EQ(PutOne(*store_, chunk).outcome, PutOutcome::kStored);
  }
  auto map = ClockMap::FromPieces({{kDeviceNs, kFirstNs - kEarlierNs, 0, 0}});
  ASSERT_TRUE(map.ok()) << map.status();
  clocks_.maps.SetDevice(TestStream(1).worker, {.nc_idx = 1}, {{{0, 0, 0, 0, *std::move(map)}}});
  ViewRequest request;
  request.query = "name:hw_notify";
  request.from_ns = kFirstNs - 100'000'000;
  request.to_ns = kFirstNs + 100'000'000;
  request.limit = 1;
  DigestService(DigestService::Deps{*store_, registry_}).RunPass();
  const auto held = Views(/*chunks_max=*/1'000, /*exact_chunks_max=*/0);
  const auto found = held->Search(record_, request, {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(*found, HasSubstr("\"digested_chunks\":40"));
  EXPECT_THAT(*found, HasSubstr("\"total\":\"2000\""));
  EXPECT_THAT(*found, HasSubstr(fmt::format("\"start_ns\":\"{}\"", kFirstNs - kEarlierNs)));
}

TEST_F(DigestServiceTest, DigestsOfAnotherVersionAreMadeAgain) {
  DigestService(DigestService::Deps{*store_, registry_}).RunPass();
  for (uint64_t first = 0; first < kChunks; first += kDigestBaseChunks) {
    const StoredDigest other{0, first, "\x7f of another version"};
    ASSERT_TRUE(store_->digests().Put(record_.id, 0, {&other, 1}).ok());
  }
  DigestService(DigestService::Deps{*store_, registry_}).RunPass();
  const auto stored = store_->digests().Last(record_.id, 0, 0);
  ASSERT_TRUE(stored.ok() && stored->has_value());
  EXPECT_TRUE(DecodeDigestHead((*stored)->value).ok());
  EXPECT_THAT(Spans(/*exact_chunks_max=*/0), HasSubstr("\"digested_chunks\":40"));
}

TEST_F(DigestServiceTest, ARunningCaptureGetsItsCompleteGroups) {
  record_.state = CaptureState::kRecording;
  ASSERT_TRUE(store_->captures().Put(record_, true).ok());
  DigestService service({.store = *store_, .registry = registry_});
  service.RunPass();
  // The last group waits for a chunk behind it.
  EXPECT_EQ((*store_->digests().Last(record_.id, 0, 0))->first, kChunks - 2 * kDigestBaseChunks);
  record_.state = CaptureState::kComplete;
  ASSERT_TRUE(store_->captures().Put(record_, true).ok());
  service.RunPass();
  EXPECT_EQ((*store_->digests().Last(record_.id, 0, 0))->first, kChunks - kDigestBaseChunks);
}

TEST_F(DigestServiceTest, TheThreadMakesThemAndEnds) {
  DigestService service({.store = *store_, .registry = registry_});
  service.Begin();
  service.End();
  // It may have ended before its first digest: what it made is valid, and the rest is read.
  EXPECT_THAT(Spans(/*exact_chunks_max=*/0), HasSubstr("\"events\":\"2000\""));
}

}  // namespace
}  // namespace neurontrace
