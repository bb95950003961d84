// SPDX-License-Identifier: Apache-2.0
// The stretch of time whose clocks a capture needs does not grow with a standing capture's age.
#include "aggregator/clocks/capture_span.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/store/store_test_support.h"
#include "lib/trace/clock_evidence_codec.h"

namespace neurontrace {
namespace {

constexpr uint64_t kHourNs = 3'600'000'000'000;
constexpr uint64_t kNowNs = 1'000 * kHourNs;

CaptureRecord Record(CaptureMode mode) {
  CaptureRecord record;
  record.spec.mode = mode;
  record.spec.retention.duration_ns = kHourNs;
  record.state = CaptureState::kRecording;
  record.started_realtime_ns = 100 * kHourNs;
  return record;
}

StreamRecord Stream(uint64_t first_timestamp_ns) {
  StreamRecord stream;
  stream.events = 1;
  stream.first_timestamp_ns = first_timestamp_ns;
  return stream;
}

TEST(CaptureSpan, IsFromStartToNowOrEnd) {
  CaptureRecord record = Record(CaptureMode::kStream);
  const std::vector<StreamRecord> streams = {Stream(kNowNs - 5)};
  EXPECT_EQ(SpanOf(record, streams, kNowNs), (RealtimeWindow{100 * kHourNs, kNowNs}));
  record.state = CaptureState::kComplete;
  record.ended_realtime_ns = 200 * kHourNs;
  EXPECT_EQ(SpanOf(record, streams, kNowNs), (RealtimeWindow{100 * kHourNs, 200 * kHourNs}));
}

TEST(CaptureSpan, ContinuousCaptureBeginsAtOldestRemaining) {
  const CaptureRecord record = Record(CaptureMode::kContinuous);
  EXPECT_EQ(SpanOf(record, {}, kNowNs).begin_ns, kNowNs - kHourNs);
  const std::vector<StreamRecord> streams = {Stream(kNowNs - 5), Stream(kNowNs - 3 * kHourNs)};
  EXPECT_EQ(SpanOf(record, streams, kNowNs).begin_ns, kNowNs - 3 * kHourNs);
  // A host whose clock is hours ahead moves nothing, one that is years behind not beyond the start.
  EXPECT_EQ(SpanOf(record, std::vector{Stream(kNowNs + kHourNs)}, kNowNs).begin_ns,
            kNowNs - kHourNs);
  EXPECT_EQ(SpanOf(record, std::vector{Stream(1)}, kNowNs).begin_ns, 100 * kHourNs);
}

class EvidenceReachTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(store_->captures().Put(record_, true).ok()); }
  void AddStream(const std::string& agent_id) {
    const ReceivedChunk chunk = TestChunk(1, TestStream(0, agent_id), 0);
    ASSERT_TRUE(store_->chunks().PutBatch({&chunk, 1}).ok());
  }
  uint64_t LastEventNs() const {
    uint64_t last_ns = 0;
    const auto streams = store_->OpenCapture(record_.id).Streams();
    EXPECT_TRUE(streams.ok()) << streams.status();
    for (const StreamRecord& stream : *streams) {
      last_ns = std::max(last_ns, stream.last_timestamp_ns);
    }
    return last_ns;
  }
  // A batch whose one snapshot was made at this time of the host's.
  void AddSnapshot(const std::string& instance_id, uint64_t realtime_ns) {
    ClockEvidence evidence;
    ++measured_;
    evidence.snapshots = {
        {.raw_begin_ns = measured_, .raw_end_ns = measured_, .realtime_ns = realtime_ns}};
    ASSERT_TRUE(store_->clocks()
                    .Put({{.host = {instance_id, "boot"},
                           .measured_realtime_ns = measured_,
                           .observations = EncodeClockEvidence(evidence)}})
                    .ok());
  }
  bool Reaches() const {
    return EvidenceReaches(store_->clocks(), LastEventsOf(*store_, record_).value()).value();
  }

  const TemporaryDirectory directory_;
  const std::unique_ptr<Store> store_ = Store::Open(directory_.path(), {}).value();
  const CaptureRecord record_ = TestCapture(1);
  uint64_t measured_ = 0;
};

TEST_F(EvidenceReachTest, ReachesWhenEachMachineHasASnapshotBehindItsLastEvent) {
  AddStream("agent-a");
  AddStream("agent-b");
  AddSnapshot("i-agent-a", LastEventNs() - 1);
  AddSnapshot("i-agent-b", LastEventNs() + 7);
  ASSERT_GT(LastEventNs(), 0u);
  EXPECT_FALSE(Reaches());
  AddSnapshot("i-agent-a", LastEventNs());
  EXPECT_TRUE(Reaches());
}

TEST_F(EvidenceReachTest, DoesNotWaitForMachinesWithoutEvents) {
  EXPECT_TRUE(Reaches());
  AddStream("agent-a");
  EXPECT_TRUE(Reaches());
}

}  // namespace
}  // namespace neurontrace
