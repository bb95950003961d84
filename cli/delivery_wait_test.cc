// SPDX-License-Identifier: Apache-2.0
#include "cli/delivery_wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/base/time_units.h"

namespace neurontrace::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr uint64_t kStoppedNs = 1'700'000'000 * kNsPerSecond;

class DeliveryWaitTest : public testing::Test {
 protected:
  DeliveryWaitTest() {
    capture_.set_state(v1::CAPTURE_STATE_STOPPING);
    capture_.set_stopped_realtime_ns(kStoppedNs);
    At(10);
    AddWorker("i-a", 1'234, 234);
    AddWorker("i-b", 50, 50);
  }
  void At(uint64_t seconds) {
    capture_.set_server_realtime_ns(kStoppedNs + seconds * kNsPerSecond);
  }
  v1::CaptureWorkerStatus& AddWorker(const std::string& instance, uint64_t read, uint64_t stored) {
    v1::CaptureWorkerStatus& worker = *capture_.add_workers();
    worker.mutable_worker()->set_instance_id(instance);
    worker.set_state(v1::CAPTURE_WORKER_STATE_STOPPING);
    worker.set_events_read(read);
    worker.set_events_stored(stored);
    return worker;
  }
  v1::AgentCertificate& AddAgent(const std::string& instance, v1::AgentPart part) {
    v1::AgentCertificate& agent = *capture_.mutable_certificate()->add_agents();
    agent.set_instance_id(instance);
    agent.set_part(part);
    agent.set_connected(true);
    return agent;
  }

  v1::Capture capture_;
  DeliveryWait wait_;
};

TEST_F(DeliveryWaitTest, IsDueEveryTenSecondsOfStopping) {
  EXPECT_TRUE(wait_.IsDue(capture_));
  At(9);
  EXPECT_FALSE(wait_.IsDue(capture_));
  At(12);
  wait_.Report(capture_);
  At(21);
  EXPECT_FALSE(wait_.IsDue(capture_));
  At(22);
  EXPECT_TRUE(wait_.IsDue(capture_));
  capture_.mutable_store_problem()->set_text("the disk is full");
  EXPECT_FALSE(wait_.IsDue(capture_)) << "the store is the reason";
  capture_.clear_store_problem();
  capture_.set_state(v1::CAPTURE_STATE_RECORDING);
  EXPECT_FALSE(wait_.IsDue(capture_));
}

TEST_F(DeliveryWaitTest, NamesAgentsThatHaveNotFinished) {
  AddAgent("i-a", v1::AGENT_PART_RECORDING);
  v1::AgentCertificate& away = AddAgent("i-b", v1::AGENT_PART_RECORDING);
  away.set_connected(false);
  away.set_away_since_realtime_ns(kStoppedNs);
  AddAgent("i-c", v1::AGENT_PART_FINISHED);
  EXPECT_EQ(wait_.Report(capture_),
            "stopped 10.0 s ago, waiting for the last data of 2 instances: i-a (1,000 events not "
            "stored), i-b (disconnected since 2023-11-14 22:13:20Z, 0 events not stored)");
}

// Counts change all the time: a line for each change of the instances is enough.
TEST_F(DeliveryWaitTest, ReportsChangesOnly) {
  v1::AgentCertificate& agent = AddAgent("i-a", v1::AGENT_PART_RECORDING);
  EXPECT_FALSE(wait_.has_reported());
  EXPECT_NE(wait_.Report(capture_), "");
  EXPECT_TRUE(wait_.has_reported());
  capture_.mutable_workers(0)->set_events_stored(300);
  EXPECT_EQ(wait_.Report(capture_), "");
  agent.set_connected(false);
  agent.set_away_since_realtime_ns(kStoppedNs);
  EXPECT_THAT(wait_.Report(capture_), HasSubstr("1 instance: i-a (disconnected since"));
  agent.set_part(v1::AGENT_PART_FINISHED);
  EXPECT_EQ(wait_.Report(capture_), "");
}

TEST_F(DeliveryWaitTest, ReadsTheWorkersWithoutAgents) {
  capture_.mutable_workers(1)->set_state(v1::CAPTURE_WORKER_STATE_COMPLETE);
  EXPECT_THAT(wait_.Report(capture_), EndsWith("1 instance: i-a (1,000 events not stored)"));
}

TEST_F(DeliveryWaitTest, NamesEightInstances) {
  for (int i = 10; i < 20; ++i) {
    AddAgent("i-" + std::to_string(i), v1::AGENT_PART_RECORDING);
  }
  EXPECT_THAT(wait_.Report(capture_), EndsWith("i-17 (0 events not stored) and 2 more"));
}

}  // namespace
}  // namespace neurontrace::cli
