// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "aggregator/aggregator_test_support.h"
#include "aggregator/clocks/clock_bound_metrics.h"
#include "aggregator/exports/export_metrics.h"
#include "aggregator/storage/capture_metrics.h"
#include "aggregator/storage/store_metrics.h"
#include "aggregator/store/store_test_support.h"
#include "lib/trace/clock_limits.h"

namespace neurontrace {
namespace {

using Counts = std::map<std::string, double>;

TEST(CaptureMetrics, EndsByOutcomeEachThereFromTheStart) {
  constexpr char kName[] = "neurontrace_aggregator_captures_ended_total";
  prometheus::Registry registry;
  CaptureMetrics metrics(registry);
  EXPECT_EQ(ValuesOf(registry, kName),
            (Counts{{"complete", 0}, {"incomplete", 0}, {"not_begun", 0}}));
  metrics.CountEnded(CaptureState::kIncomplete);
  metrics.CountEnded(CaptureState::kIncomplete);
  metrics.CountEnded(CaptureState::kNotBegun);
  EXPECT_EQ(ValuesOf(registry, kName),
            (Counts{{"complete", 0}, {"incomplete", 2}, {"not_begun", 1}}));
}

TEST(CaptureMetrics, RefusalsByTheKindOfTheirError) {
  prometheus::Registry registry;
  CaptureMetrics metrics(registry);
  metrics.CountAnswer(absl::OkStatus());
  metrics.CountAnswer(absl::InvalidArgumentError(""));
  metrics.CountAnswer(absl::ResourceExhaustedError(""));
  metrics.CountAnswer(absl::FailedPreconditionError(""));
  metrics.CountAnswer(absl::PermissionDeniedError(""));
  metrics.CountAnswer(absl::UnauthenticatedError(""));
  metrics.CountAnswer(absl::DataLossError(""));
  EXPECT_EQ(
      ValuesOf(registry, "neurontrace_aggregator_captures_refused_total"),
      (Counts{
          {"invalid", 1}, {"limit", 1}, {"precondition", 1}, {"not_permitted", 2}, {"failed", 1}}));
}

constexpr char kBound[] = "neurontrace_aggregator_clock_bound_seconds";
constexpr char kLeftOut[] = "neurontrace_aggregator_clock_bounds_left_out";

TEST(ClockBoundMetrics, ExportedWhileKnown) {
  prometheus::Registry registry;
  ClockBoundMetrics metrics(registry);
  metrics.Publish({{"i-1", 20'000}, {"i-2", 3'000'000}});
  EXPECT_EQ(ValuesOf(registry, kBound).size(), 2u);
  EXPECT_DOUBLE_EQ(ValuesOf(registry, kBound).at("i-1"), 20e-6);
  metrics.Publish({{"i-2", 1'000}});
  EXPECT_EQ(ValuesOf(registry, kBound).size(), 1u);
  EXPECT_DOUBLE_EQ(ValuesOf(registry, kBound).at("i-2"), 1e-6);
  EXPECT_EQ(ValuesOf(registry, kLeftOut).at(""), 0);
}

TEST(ClockBoundMetrics, KeepsWidestBoundsBeyondLimit) {
  prometheus::Registry registry;
  ClockBoundMetrics metrics(registry);
  std::map<std::string, uint64_t> bounds;
  for (uint64_t i = 0; i < limits::kClockBoundSeriesMax + 3; ++i) {
    bounds["i-" + std::to_string(i)] = 1'000 + i;
  }
  metrics.Publish(bounds);
  const auto shown = ValuesOf(registry, kBound);
  EXPECT_EQ(shown.size(), limits::kClockBoundSeriesMax);
  EXPECT_FALSE(shown.contains("i-0"));
  EXPECT_FALSE(shown.contains("i-2"));
  EXPECT_TRUE(shown.contains("i-3"));
  EXPECT_TRUE(shown.contains("i-" + std::to_string(limits::kClockBoundSeriesMax + 2)));
  EXPECT_EQ(ValuesOf(registry, kLeftOut).at(""), 3);
}

class ExportMetricsTest : public ::testing::Test {
 protected:
  prometheus::ClientMetric::Histogram Seconds() const {
    for (const auto& family : registry_.Collect()) {
      if (family.name == "neurontrace_aggregator_export_seconds") {
        return family.metric.at(0).histogram;
      }
    }
    return {};
  }
  double BytesOf(const std::string& format) const {
    return ValuesOf(registry_, "neurontrace_aggregator_export_bytes_total").at(format);
  }
  Counts Failed() const {
    return ValuesOf(registry_, "neurontrace_aggregator_exports_failed_total");
  }
  static v1::ExportReply Progress(uint64_t bytes) {
    v1::ExportReply reply;
    reply.mutable_progress()->set_bytes_written(bytes);
    return reply;
  }

  prometheus::Registry registry_;
  ExportMetrics metrics_{registry_};
  FakeClock clock_;
  v1::ExportRequest request_;
};

TEST_F(ExportMetricsTest, CountsBytesAsTheyAreWrittenAndTheTimeAtTheEnd) {
  request_.set_format(v1::EXPORT_FORMAT_EVENTS);
  EXPECT_EQ(BytesOf("events"), 0);
  {
    ExportMetrics::Meter meter(metrics_, clock_, request_);
    meter.Observe(Progress(100));
    v1::ExportReply data;
    data.set_data("not counted by its size, as it may be compressed or held");
    meter.Observe(data);
    EXPECT_EQ(BytesOf("events"), 100);
    meter.Observe(Progress(90));  // begins a file again: the count stays
    EXPECT_EQ(BytesOf("events"), 100);
    v1::ExportReply done;
    done.mutable_done()->mutable_total()->set_bytes_written(250);
    meter.Observe(done);
    clock_.AdvanceNs(7'000'000'000);
    EXPECT_EQ(Seconds().sample_count, 0u);
  }
  EXPECT_EQ(BytesOf("events"), 250);
  EXPECT_EQ(Seconds().sample_count, 1u);
  EXPECT_DOUBLE_EQ(Seconds().sample_sum, 7);
}

TEST_F(ExportMetricsTest, ClassifiesFailuresByResponsibleParty) {
  EXPECT_EQ(
      Failed(),
      (Counts{
          {"cancelled", 0}, {"destination", 0}, {"invalid", 0}, {"not_found", 0}, {"store", 0}}));
  metrics_.CountFailed(absl::CancelledError("the reader went away"), false);
  metrics_.CountFailed(absl::CancelledError("the aggregator ends"), true);
  metrics_.CountFailed(absl::InvalidArgumentError("no such format"), true);
  metrics_.CountFailed(absl::FailedPreconditionError("below none of the roots"), false);
  metrics_.CountFailed(absl::NotFoundError("no capture"), false);
  metrics_.CountFailed(absl::NotFoundError("no bucket"), true);
  metrics_.CountFailed(absl::ResourceExhaustedError("no space left"), true);
  metrics_.CountFailed(absl::FailedPreconditionError("HTTP 403"), true);
  metrics_.CountFailed(absl::UnavailableError("the disk does not answer"), false);
  metrics_.CountFailed(absl::DataLossError("damaged"), true);
  EXPECT_EQ(
      Failed(),
      (Counts{
          {"cancelled", 2}, {"destination", 3}, {"invalid", 2}, {"not_found", 1}, {"store", 2}}));
}

TEST_F(ExportMetricsTest, SeveralFormatsHaveOneSum) {
  request_.set_format(v1::EXPORT_FORMAT_EVENTS);
  request_.add_more_formats(v1::EXPORT_FORMAT_JSON);
  ExportMetrics::Meter(metrics_, clock_, request_).Observe(Progress(10));
  EXPECT_EQ(BytesOf("several"), 10);
  EXPECT_EQ(BytesOf("events"), 0);
}

class StoreMetricsTest : public ::testing::Test {
 protected:
  StoreMetricsTest() { EXPECT_TRUE(store_->captures().Put(TestCapture(1), true).ok()); }

  void Put(const ReceivedChunk& chunk) { EXPECT_TRUE(store_->chunks().PutBatch({&chunk, 1}).ok()); }
  double Value(const std::string& name, const std::string& labels = "") const {
    return ValuesOf(registry_, "neurontrace_aggregator_" + name).at(labels);
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<Store> store_ = Store::Open(directory_.path(), {}).value();
  prometheus::Registry registry_;
  StoreMetrics metrics_{registry_, *store_, {.capture_bytes = 5, .store_bytes = 7}};
};

TEST_F(StoreMetricsTest, LossesComeFromStreamRecords) {
  EXPECT_EQ(Value("events_lost_total", "runtime ring,overwritten"), 0);
  ReceivedChunk told = TestChunk(1, TestStream(0), 0);
  told.header.losses = {
      {.place = LossPlace::kRuntimeRing, .reason = LossReason::kOverwritten, .events = 5},
      {.place = LossPlace::kDecode, .reason = LossReason::kMalformed, .events_unknown = true}};
  Put(told);
  Put(told);  // a retry tells nothing new
  // Two chunks of ten events did not come, and the spool is where they were lost.
  ReceivedChunk behind = TestChunk(1, TestStream(0), 3);
  behind.header.events_before = 30;
  behind.header.losses_before = {
      {.place = LossPlace::kRuntimeRing, .reason = LossReason::kOverwritten, .events = 9},
      {.place = LossPlace::kDecode, .reason = LossReason::kMalformed, .events_unknown = true}};
  behind.gone_before = PrecedingGap{LossPlace::kSpool, LossReason::kOverwritten};
  Put(behind);
  metrics_.Publish();
  metrics_.Publish();
  EXPECT_EQ(Value("events_lost_total", "runtime ring,overwritten"), 9);
  EXPECT_EQ(Value("events_lost_total", "spool,overwritten"), 20);
  EXPECT_EQ(Value("events_lost_total", "decode,malformed"), 0);
}

TEST_F(StoreMetricsTest, ExportsRocksDbStatusAndFreeSpace) {
  EXPECT_EQ(Value("quota_bytes", "capture"), 5);
  EXPECT_EQ(Value("quota_bytes", "job"), 0);
  EXPECT_EQ(Value("quota_bytes", "store"), 7);
  EXPECT_TRUE(ValuesOf(registry_, "neurontrace_aggregator_disk_free_bytes").empty());
  for (uint64_t i = 0; i < 50; ++i) Put(TestChunk(1, TestStream(0), i));
  metrics_.Publish();
  metrics_.UpdateDiskMetrics();
  EXPECT_GT(Value("store_memtable_bytes"), 50 * 2'000);
  EXPECT_GT(Value("store_wal_bytes"), 50 * 2'000);
  EXPECT_GT(Value("disk_free_bytes"), 0);
  EXPECT_EQ(Value("store_write_stalled"), 0);
  EXPECT_EQ(Value("store_background_errors_total"), 0);
  EXPECT_EQ(Value("store_blob_garbage_bytes"), 0);
  EXPECT_EQ(Value("artifact_store_bytes"), 0);
}

}  // namespace
}  // namespace neurontrace
