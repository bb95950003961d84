// SPDX-License-Identifier: Apache-2.0
// From the command to all recording, of a fleet of fake agents in one process: the coordinator's
// own work in real time, and the agents' answers and the lead in the time of the clock that is
// advanced.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "aggregator/session/coordinator.h"
#include "aggregator/session/fake_session_environment.h"

namespace neurontrace {
namespace {

constexpr uint32_t kWorkers = 8;  // of an agent
constexpr uint64_t kAnswerNs = 10'000'000;

// Agents that answer every order 10 ms after it was sent.
class FakeFleet : private OrderSender, private SessionStorage, private SessionClocks {
 public:
  explicit FakeFleet(uint32_t agents) {
    coordinator_ = std::make_unique<Coordinator>(Coordinator::Deps{.clock = clock_,
                                                                   .random = random_,
                                                                   .orders = *this,
                                                                   .storage = *this,
                                                                   .clocks = *this,
                                                                   .quota = quota_});
    for (uint32_t i = 0; i < agents; ++i) Connect(i);
  }

  // Until every worker records; in the time of the clock.
  uint64_t Record() {
    const uint64_t begun_ns = clock_.MonotonicNs();
    const CaptureId id = coordinator_->StartCapture({.conditions = {.require_percent = 100}})->id;
    clock_.AdvanceNs(kAnswerNs);
    for (const Order& order : std::exchange(orders_, {})) Answer(order, CaptureWorkerState::kArmed);
    const CaptureBegin begin = *coordinator_->FindRunning(id)->begin;
    clock_.AdvanceNs(begin.reference_ns - clock_.RealtimeNs());
    const uint64_t recording_ns = clock_.MonotonicNs();
    for (const Order& order : std::exchange(orders_, {})) {
      Answer(order, CaptureWorkerState::kRecording);
    }
    End(id);
    return recording_ns - begun_ns;
  }

 private:
  void SendOrder(const std::string& agent_id, ConnectionId connection,
                 const CaptureOrder& order) override {
    orders_.push_back({agent_id, connection, order});
  }
  absl::Status PutCapture(const CaptureRecord& record, bool) override {
    benchmark::DoNotOptimize(record.workers.size());
    return absl::OkStatus();
  }
  void RememberAgent(const KnownAgent&) override {}
  void RememberWorker(const std::string&, const WorkerInfo&) override {}
  uint64_t ReferenceNs() const override { return clock_.RealtimeNs(); }
  std::optional<MomentOnHost> MomentOn(const AgentInfo&, uint64_t reference_ns) const override {
    return MomentOnHost{.raw_ns = reference_ns, .bound_ns = 5'000};
  }
  void RefreshSoon() override {}

  struct Order {
    std::string agent_id;
    ConnectionId connection = 0;
    CaptureOrder order;
  };

  void Connect(uint32_t number) {
    const std::string id = "agent-" + std::to_string(number);
    const std::string instance = "i-" + std::to_string(number);
    coordinator_
        ->Connect({.protocol_version = kProtocolVersion, .agent_id = id, .instance_id = instance},
                  number + 1)
        .status()
        .IgnoreError();
    for (uint32_t pid = 1; pid <= kWorkers; ++pid) {
      WorkerInfo worker{.identity = {.instance_id = instance, .boot_id = "boot", .pid = pid},
                        .state = WorkerState::kIdle,
                        .job = "llama"};
      workers_[id].push_back(worker.identity);
      coordinator_->OnWorker(id, number + 1, worker).IgnoreError();
    }
  }

  void Answer(const Order& order, CaptureWorkerState state) {
    const CaptureId id = std::visit([](const auto& any) { return any.capture_id; }, order.order);
    for (const WorkerIdentity& worker : workers_[order.agent_id]) {
      coordinator_
          ->OnWorkerStatus(order.agent_id, order.connection,
                           {.capture_id = id, .worker = worker, .state = state})
          .IgnoreError();
    }
    const bool finished = state == CaptureWorkerState::kComplete;
    coordinator_->OnAgentStatus(order.agent_id, order.connection, id, kWorkers, finished)
        .IgnoreError();
  }

  void End(const CaptureId& id) {
    coordinator_->StopCapture(id).status().IgnoreError();
    for (const Order& order : std::exchange(orders_, {})) {
      Answer(order, CaptureWorkerState::kComplete);
    }
  }

  FakeClock clock_;
  SeededRandom random_{1};
  UnlimitedQuota quota_;
  std::unique_ptr<Coordinator> coordinator_;
  std::map<std::string, std::vector<WorkerIdentity>> workers_;
  std::vector<Order> orders_;
};

void CommandToAllRecording(benchmark::State& state) {
  FakeFleet fleet(static_cast<uint32_t>(state.range(0)));
  uint64_t planned_ns = 0;
  for (auto _ : state) planned_ns = fleet.Record();
  state.counters["planned_ms"] = static_cast<double>(planned_ns) * 1e-6;
}
BENCHMARK(CommandToAllRecording)->Arg(10)->Arg(100)->Arg(1'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace neurontrace
