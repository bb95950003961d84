// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/clock_model_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "aggregator/store/clock_evidence_store.h"
#include "aggregator/store/store_test_support.h"
#include "lib/base/time_units.h"
#include "lib/trace/clock_evidence_codec.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

constexpr uint64_t kStart = 1'700'000'000 * kNsPerSecond;  // raw 0, by the reference

class ClockModelCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    record_ = TestCapture(1);
    record_.started_realtime_ns = kStart + 40 * kNsPerSecond;
    record_.ended_realtime_ns = kStart + 50 * kNsPerSecond;
    ASSERT_TRUE(store_->captures().Put(record_, true).ok());
  }
  void AddStream(const std::string& agent_id) {
    const ReceivedChunk chunk = TestChunk(1, TestStream(0, agent_id), 0);
    ASSERT_TRUE(store_->chunks().PutBatch({&chunk, 1}).ok());
  }
  // A host whose REALTIME is so far ahead of the reference, probed twice a second over ways of 30
  // us each from second `from` on.
  void AddEvidence(const std::string& instance_id, int64_t ahead_ns, uint64_t from, uint64_t to) {
    for (uint64_t s = from; s < to; s += 2) {
      ClockEvidence evidence;
      for (uint64_t raw = s * kNsPerSecond; raw < (s + 2) * kNsPerSecond; raw += kNsPerSecond / 2) {
        evidence.exchanges.push_back({.send_raw_ns = raw,
                                      .reference_receive_ns = kStart + raw + 30'000,
                                      .reference_send_ns = kStart + raw + 31'000,
                                      .receive_raw_ns = raw + 61'000,
                                      .reference_epoch = 1,
                                      .path = ProbePath::kUdp});
      }
      evidence.snapshots.push_back(
          {.raw_begin_ns = s * kNsPerSecond,
           .raw_end_ns = s * kNsPerSecond + 100,
           .realtime_ns = kStart + s * kNsPerSecond + 50 + static_cast<uint64_t>(ahead_ns),
           .monotonic_ns = s * kNsPerSecond + 50,
           .boottime_ns = s * kNsPerSecond + 50,
           .tick_us = 10'000});
      ASSERT_TRUE(store_->clocks()
                      .Put({{.host = {instance_id, "boot"},
                             .measured_realtime_ns = kStart + (s + 2) * kNsPerSecond,
                             .observations = EncodeClockEvidence(evidence)}})
                      .ok());
    }
  }

  const TemporaryDirectory directory_;
  const std::unique_ptr<Store> store_ = Store::Open(directory_.path(), {}).value();
  FakeClock clock_{kStart + 60 * kNsPerSecond};
  prometheus::Registry registry_;
  ClockModelCacheMetrics metrics_{registry_};
  ClockModelCache book_{*store_, clock_, metrics_};
  CaptureRecord record_;
};

TEST_F(ClockModelCacheTest, TakesTheStampsOfACaptureToTheReference) {
  AddStream("agent-a");
  AddStream("agent-b");
  AddEvidence("i-agent-a", 2 * static_cast<int64_t>(kNsPerSecond), 20, 70);
  AddEvidence("i-agent-b", -3 * static_cast<int64_t>(kNsPerSecond), 20, 70);
  const auto clocks = book_.ForCapture(record_);
  ASSERT_TRUE(clocks.ok()) << clocks.status();
  ASSERT_EQ(clocks->instances.size(), 2u);
  for (const auto& [agent_id, ahead_ns] :
       {std::pair("agent-a", 2'000'000'000LL), std::pair("agent-b", -3'000'000'000LL)}) {
    const WorkerIdentity worker = TestStream(0, agent_id).worker;
    const ClockMap& map = clocks->maps.For(worker, ClockDomain::kHostRealtime);
    const uint64_t true_ns = kStart + 45 * kNsPerSecond;
    const uint64_t stamp_ns = true_ns + static_cast<uint64_t>(ahead_ns);
    const auto error_ns = static_cast<int64_t>(map.ToReference(stamp_ns) - true_ns);
    EXPECT_LE(std::abs(error_ns), 1'000) << agent_id;
    ASSERT_TRUE(map.ErrorBoundNs(stamp_ns)) << agent_id;
    EXPECT_LE(*map.ErrorBoundNs(stamp_ns), 35'000u) << agent_id;
    EXPECT_GE(*map.ErrorBoundNs(stamp_ns), 30'000u) << agent_id;
    const InstanceClock* clock = clocks->Find(worker);
    ASSERT_NE(clock, nullptr);
    EXPECT_NEAR(static_cast<double>(clock->offset_ns), static_cast<double>(-ahead_ns), 1'000);
    EXPECT_NEAR(static_cast<double>(clock->drift_ppb), 0, 200);
    EXPECT_THAT(clock->sources, Contains("udp"));
  }
}

TEST_F(ClockModelCacheTest, LeavesTimesWithoutEvidenceUnchanged) {
  AddStream("agent-a");
  const auto clocks = book_.ForCapture(record_);
  ASSERT_TRUE(clocks.ok()) << clocks.status();
  EXPECT_THAT(clocks->instances, IsEmpty());
  const WorkerIdentity worker = TestStream(0, "agent-a").worker;
  EXPECT_TRUE(clocks->maps.For(worker, ClockDomain::kHostRealtime).is_identity());
}

TEST_F(ClockModelCacheTest, TheSameEvidenceGivesTheSameClocks) {
  AddStream("agent-a");
  AddEvidence("i-agent-a", 12'345'678, 20, 70);
  const auto once = book_.ForCapture(record_);
  const auto again = book_.ForCapture(record_);
  ASSERT_TRUE(once.ok() && again.ok());
  ASSERT_EQ(once->instances.size(), 1u);
  EXPECT_EQ(once->instances[0].model, again->instances[0].model);
}

TEST_F(ClockModelCacheTest, KnowsTheClocksOfNowWithoutACapture) {
  AddEvidence("i-agent-a", 500, 20, 70);
  AddEvidence("i-of-yesterday", 500, 20, 30);
  const auto clocks =
      book_.Now(kStart + 70 * kNsPerSecond + ClockModelCache::kNowNs - 20 * kNsPerSecond);
  ASSERT_TRUE(clocks.ok()) << clocks.status();
  ASSERT_EQ(clocks->instances.size(), 1u);
  EXPECT_EQ(clocks->instances[0].instance_id, "i-agent-a");
}

// The way there is 200 us longer than the way back, which probes cannot see. Both have a clock in
// hardware that keeps UTC.
TEST_F(ClockModelCacheTest, ReferenceUtcCorrectsAsymmetry) {
  AddStream("agent-a");
  const auto utc = [](uint64_t raw_ns, uint64_t true_ns) {
    return UtcReading{UtcSource::kPhc, raw_ns, true_ns + 37'000'000 - 3'000,
                      true_ns + 37'000'000 + 3'000};
  };
  constexpr uint64_t kOwnRaw = 5'000 * kNsPerSecond;  // at kStart
  for (uint64_t s = 0; s < 70; s += 2) {
    ClockEvidence host;
    ClockEvidence own;
    for (uint64_t raw = s * kNsPerSecond; raw < (s + 2) * kNsPerSecond; raw += kNsPerSecond / 4) {
      host.exchanges.push_back({.send_raw_ns = raw,
                                .reference_receive_ns = kStart + raw + 230'000,
                                .reference_send_ns = kStart + raw + 231'000,
                                .receive_raw_ns = raw + 261'000,
                                .reference_epoch = 1,
                                .path = ProbePath::kUdp});
    }
    const uint64_t at = s * kNsPerSecond;
    host.snapshots.push_back({at, at + 100, kStart + at + 50, at + 50, at + 50, 0, 10'000, 0, 0});
    host.utc.push_back(utc(at + 1'000, kStart + at + 1'000));
    own.exchanges.push_back(
        {kOwnRaw + at, kStart + at, kStart + at, kOwnRaw + at, 1, ProbePath::kPeer});
    own.utc.push_back(utc(kOwnRaw + at + 7'000, kStart + at + 7'000));
    ASSERT_TRUE(store_->clocks()
                    .Put({{{"i-agent-a", "boot"}, kStart + at, EncodeClockEvidence(host)},
                          {ReferenceHost("boot"), kStart + at, EncodeClockEvidence(own)}})
                    .ok());
  }
  const auto clocks = book_.ForCapture(record_);
  ASSERT_TRUE(clocks.ok()) << clocks.status();
  ASSERT_EQ(clocks->instances.size(), 1u);
  EXPECT_THAT(clocks->instances[0].sources, Contains("phc"));
  EXPECT_NEAR(static_cast<double>(clocks->instances[0].offset_ns), 0, 1'000);
  EXPECT_LE(clocks->instances[0].likely_bound_ns, 12'000u);
  const auto now = book_.Now(kStart + 70 * kNsPerSecond);
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(now->instances.size(), 1u);  // the keeper is none of them
}

// Goal: a capture's clocks are judged by what its events need. Method: a clock that is known well
// until 53,000 of its own time, and badly from there on.

class StampWindowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    InstanceClock clock;
    clock.instance_id = "i-a";
    clock.boot_id = "boot";
    clock.model.segments = {{.knots = {{1'000, 51'000, 30, 10}, {9'000, 59'000, 30, 10}}}};
    clock.realtime = *ClockMap::FromPieces({{1'000, 51'000, 0, 30}, {3'000, 53'000, 0, 4'000}});
    clock.bound_ns = 4'000;
    clock.likely_bound_ns = 3'980;
    clocks_.instances = {clock};
    clocks_.window = {51'000, 58'000};
  }
  static StreamRecord Stream(const std::string& instance_id, uint64_t last_ns) {
    StreamRecord stream;
    stream.identity.worker.instance_id = instance_id;
    stream.identity.worker.boot_id = "boot";
    stream.first_timestamp_ns = last_ns == 0 ? 0 : 1'000;
    stream.last_timestamp_ns = last_ns;
    return stream;
  }
  CaptureClocks clocks_;
};

TEST_F(StampWindowTest, EndsWithLastEventOfKnownClocks) {
  EndWithEvents({Stream("i-a", 2'000), Stream("i-a", 2'500), Stream("i-b", 7'000)}, clocks_);
  EXPECT_EQ(clocks_.window.begin_ns, 51'000u);
  EXPECT_EQ(clocks_.window.end_ns, 52'500u);
  EXPECT_EQ(clocks_.instances[0].bound_ns, 30u);
  EXPECT_EQ(clocks_.instances[0].likely_bound_ns, 10u);
}

TEST_F(StampWindowTest, EventsInTheWorstOfItCount) {
  EndWithEvents({Stream("i-a", 6'000)}, clocks_);
  EXPECT_EQ(clocks_.window.end_ns, 56'000u);
  EXPECT_EQ(clocks_.instances[0].bound_ns, 4'000u);
}

TEST_F(StampWindowTest, WithoutEventsEverythingStays) {
  EndWithEvents({Stream("i-a", 0), Stream("i-b", 7'000)}, clocks_);
  EXPECT_EQ(clocks_.window.end_ns, 58'000u);
  EXPECT_EQ(clocks_.instances[0].bound_ns, 4'000u);
}

}  // namespace
}  // namespace neurontrace
