// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "aggregator/session/coordinator.h"
#include "lib/base/status.h"
#include "lib/trace/agent_info.h"

namespace neurontrace {

// A coordinator over agents that the test plays, on a clock that it advances, and a disk that can
// be full. Each agent's host counts raw from 1,000 s behind the reference.
class CoordinatorTestBase : public ::testing::Test,
                            private OrderSender,
                            private SessionStorage,
                            private SessionClocks,
                            private StorageQuota,
                            private CaptureObserver {
 protected:
  static constexpr uint64_t kSecondNs = 1'000'000'000;
  static constexpr uint64_t kRawBehindNs = 1'000 * kSecondNs;

  static AgentInfo Agent(const std::string& id) {
    return {.protocol_version = kProtocolVersion, .agent_id = id, .instance_id = "i-" + id};
  }
  static WorkerIdentity WorkerOf(const std::string& agent_id, uint32_t pid = 1) {
    return {.instance_id = "i-" + agent_id, .boot_id = "boot", .pid = pid};
  }

  CoordinatorTestBase() { Restart(); }

  // A new coordinator that knows what the old one persisted, as after a restart of the aggregator.
  void Restart() {
    coordinator_ = std::make_unique<Coordinator>(Coordinator::Deps{.clock = clock_,
                                                                   .random = random_,
                                                                   .orders = *this,
                                                                   .storage = *this,
                                                                   .clocks = *this,
                                                                   .quota = *this});
    coordinator_->AddObserver(*this);
    for (const auto& [id, record] : saved_) coordinator_->RestoreCapture(record);
  }

  std::vector<ResumedCapture> Connect(const std::string& agent_id,
                                      uint32_t protocol_version = kProtocolVersion) {
    connections_[agent_id] = ++last_connection_;
    AgentInfo info = Agent(agent_id);
    info.protocol_version = protocol_version;
    return coordinator_->Connect(info, last_connection_).value();
  }
  void Disconnect(const std::string& agent_id) {
    coordinator_->Disconnect(agent_id, connections_[agent_id]);
  }
  void Put(const std::string& agent_id, const WorkerInfo& worker) {
    EXPECT_TRUE(coordinator_->OnWorker(agent_id, connections_[agent_id], worker).ok());
  }
  void Put(const std::string& agent_id, WorkerState state, uint32_t pid = 1,
           const std::string& job = "") {
    Put(agent_id, {.identity = WorkerOf(agent_id, pid), .state = state, .job = job});
  }
  void Report(const std::string& agent_id, const CaptureId& capture, CaptureWorkerState state,
              const std::string& detail = "", CaptureObstacle obstacle = CaptureObstacle::kNone) {
    Report(agent_id, {.capture_id = capture,
                      .worker = WorkerOf(agent_id),
                      .state = state,
                      .detail = detail,
                      .obstacle = obstacle});
  }
  void Report(const std::string& agent_id, const CaptureWorkerStatus& status) {
    EXPECT_TRUE(coordinator_->OnWorkerStatus(agent_id, connections_[agent_id], status).ok());
  }
  void ReportAgent(const std::string& agent_id, const CaptureId& capture, uint32_t matched,
                   bool finished) {
    EXPECT_TRUE(
        coordinator_->OnAgentStatus(agent_id, connections_[agent_id], capture, matched, finished)
            .ok());
  }
  CaptureId Start(const CaptureSpec& spec = {}) {
    return coordinator_->StartCapture(spec).value().id;
  }
  // Each of these agents has one worker, which is armed and begins.
  CaptureId Record(const std::vector<std::string>& agents, const CaptureSpec& spec = {}) {
    const CaptureId id = Start(spec);
    for (const std::string& agent : agents) Arm(agent, id);
    EXPECT_EQ(saved_[id].state, CaptureState::kRecording);
    for (const std::string& agent : agents) Report(agent, id, CaptureWorkerState::kRecording);
    return id;
  }
  void Arm(const std::string& agent, const CaptureId& id) {
    Report(agent, id, CaptureWorkerState::kArmed);
    ReportAgent(agent, id, 1, false);
  }
  void Advance(uint64_t ns) {
    clock_.AdvanceNs(ns);
    coordinator_->Tick();
  }
  // In steps, as time is let pass.
  void AdvanceSmoothly(uint64_t ns) {
    constexpr uint64_t kStepNs = 5'000'000;
    for (; ns > kStepNs; ns -= kStepNs) Advance(kStepNs);
    Advance(ns);
  }
  const CaptureWorkerStatus& StatusOf(const CaptureId& id, const std::string& agent_id,
                                      uint32_t pid = 1) {
    static const CaptureWorkerStatus kNone;
    const CaptureRecord* const running = coordinator_->Find(id);
    const CaptureRecord& record = running != nullptr ? *running : saved_[id];
    for (const CaptureWorkerStatus& status : record.workers) {
      if (status.worker == WorkerOf(agent_id, pid)) return status;
    }
    ADD_FAILURE() << "no status of " << agent_id;
    return kNone;
  }
  std::vector<std::string> TakeOrders() { return std::exchange(orders_, {}); }

  FakeClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<Coordinator> coordinator_;
  std::map<std::string, ConnectionId> connections_;
  ConnectionId last_connection_ = 0;
  std::vector<std::string> orders_;                        // "a arm", "b stop"
  std::map<std::string, std::vector<CaptureOrder>> sent_;  // by agent
  std::map<CaptureId, CaptureRecord> saved_;
  std::map<CaptureId, CaptureRecord> replies_;
  std::vector<CaptureId> ended_;  // as often as OnCaptureEnded was called
  std::vector<ArmingOutcome> judged_;
  std::map<CaptureObstacle, uint32_t> refused_;
  std::map<CaptureId, uint64_t> stored_;
  std::map<CaptureId, std::vector<std::string>> over_quota_;
  bool disk_full_ = false;
  bool clocks_known_ = true;
  bool store_has_room_ = true;
  CaptureQuotas quotas_;
  StoreUse use_;

 private:
  static std::string DescribeOrder(const CaptureOrder& order) {
    if (const auto* const start = std::get_if<StartOrder>(&order)) {
      return start->arm ? "arm" : "start";
    }
    return std::holds_alternative<BeginOrder>(order) ? "begin" : "stop";
  }

  void SendOrder(const std::string& agent_id, ConnectionId connection,
                 const CaptureOrder& order) override {
    EXPECT_EQ(connection, connections_[agent_id]);
    orders_.push_back(agent_id + " " + DescribeOrder(order));
    sent_[agent_id].push_back(order);
  }

  absl::Status PutCapture(const CaptureRecord& record, bool) override {
    if (disk_full_) return ResourceExhausted("the disk is full");
    saved_[record.id] = record;
    return absl::OkStatus();
  }
  void RememberAgent(const KnownAgent&) override {}
  void RememberWorker(const std::string&, const WorkerInfo&) override {}

  uint64_t ReferenceNs() const override { return clock_.RealtimeNs(); }
  std::optional<MomentOnHost> MomentOn(const AgentInfo&, uint64_t reference_ns) const override {
    if (!clocks_known_) return std::nullopt;
    return MomentOnHost{.raw_ns = reference_ns - kRawBehindNs, .bound_ns = 1'000};
  }
  void RefreshSoon() override {}

  absl::StatusOr<CaptureAllowance> Admit(const CaptureSpec& spec, const std::set<std::string>&,
                                         std::optional<uint64_t> own_bytes) override {
    StoreUse use = use_;
    use.own_bytes = own_bytes;
    return neurontrace::Admit(spec, quotas_, use);
  }
  uint64_t StoredBytes(const CaptureId& id) const override {
    const auto it = stored_.find(id);
    return it == stored_.end() ? 0 : it->second;
  }
  bool HasRoom() const override { return store_has_room_; }

  void OnCaptureChanged(const CaptureRecord& record) override { replies_[record.id] = record; }
  void OnCaptureEnded(const CaptureRecord& record) override { ended_.push_back(record.id); }
  void OnCaptureStoppedByQuota(const CaptureRecord& record, const std::string& why) override {
    over_quota_[record.id].push_back(why);
  }
  void OnCaptureArmed(const ArmingOutcome& outcome) override { judged_.push_back(outcome); }
  void OnWorkersRefused(CaptureObstacle obstacle, uint32_t workers) override {
    refused_[obstacle] += workers;
  }
};

}  // namespace neurontrace
