// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store_metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "aggregator/store/store_test_support.h"

namespace neurontrace {
namespace {

class StoreMetricsTest : public ::testing::Test {
 protected:
  StoreMetricsTest() { EXPECT_TRUE(store_->captures().Put(TestCapture(1), true).ok()); }

  void Put(const ReceivedChunk& chunk) { EXPECT_TRUE(store_->chunks().PutBatch({&chunk, 1}).ok()); }
  // "name,label value,…" to its value.
  std::map<std::string, double> Values() const {
    std::map<std::string, double> values;
    for (const auto& family : registry_.Collect()) {
      for (const auto& metric : family.metric) {
        std::string name = family.name.substr(std::string("neurontrace_aggregator_").size());
        for (const auto& label : metric.label) name += "," + label.value;
        const bool is_counter = family.type == prometheus::MetricType::Counter;
        values[name] = is_counter ? metric.counter.value : metric.gauge.value;
      }
    }
    return values;
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<Store> store_ = Store::Open(directory_.path(), {}).value();
  prometheus::Registry registry_;
  StoreMetrics metrics_{registry_, *store_, {.capture_bytes = 5, .store_bytes = 7}};
};

TEST_F(StoreMetricsTest, LossesAreThoseThatTheStreamsRecordsTell) {
  EXPECT_EQ(Values().at("events_lost_total,runtime ring,overwritten"), 0);
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
  behind.gone_before = GoneBefore{LossPlace::kSpool, LossReason::kOverwritten};
  Put(behind);
  metrics_.Publish();
  metrics_.Publish();
  EXPECT_EQ(Values().at("events_lost_total,runtime ring,overwritten"), 9);
  EXPECT_EQ(Values().at("events_lost_total,spool,overwritten"), 20);
  EXPECT_EQ(Values().at("events_lost_total,decode,malformed"), 0);
}

TEST_F(StoreMetricsTest, SaysHowRocksDbDoesAndWhatRoomThereIs) {
  EXPECT_EQ(Values().at("quota_bytes,capture"), 5);
  EXPECT_EQ(Values().at("quota_bytes,job"), 0);
  EXPECT_EQ(Values().at("quota_bytes,store"), 7);
  EXPECT_FALSE(Values().contains("disk_free_bytes"));
  for (uint64_t i = 0; i < 50; ++i) Put(TestChunk(1, TestStream(0), i));
  metrics_.Publish();
  metrics_.LookAtDisk();
  const auto values = Values();
  EXPECT_GT(values.at("store_memtable_bytes"), 50 * 2'000);
  EXPECT_GT(values.at("store_wal_bytes"), 50 * 2'000);
  EXPECT_GT(values.at("disk_free_bytes"), 0);
  EXPECT_EQ(values.at("store_write_stalled"), 0);
  EXPECT_EQ(values.at("store_background_errors_total"), 0);
  EXPECT_EQ(values.at("store_blob_garbage_bytes"), 0);
  EXPECT_EQ(values.at("artifact_store_bytes"), 0);
}

}  // namespace
}  // namespace neurontrace
