// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/evidence_reach.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "aggregator/store/store_test_support.h"
#include "trace/clock_evidence_codec.h"

namespace neurontrace {
namespace {

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

TEST_F(EvidenceReachTest, WaitsForNobodyWhoHasNothing) {
  EXPECT_TRUE(Reaches());
  AddStream("agent-a");
  EXPECT_TRUE(Reaches());
}

}  // namespace
}  // namespace neurontrace
