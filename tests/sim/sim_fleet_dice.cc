// SPDX-License-Identifier: Apache-2.0
// What may happen at any step, by chance.
#include <algorithm>

#include "tests/sim/sim_fleet.h"

namespace neurontrace {
namespace {

constexpr size_t kRunningMax = 3;
// A worker records for one capture at a time.
constexpr size_t kRunningCalmMax = 1;
constexpr size_t kCapturesMax = 12;
constexpr size_t kWorkersMax = 6;

bool Happens(SimRandom& random, uint32_t per_million) {
  return per_million > 0 && random.Next64() % 1'000'000 < per_million;
}

}  // namespace

void SimFleet::RollTheDice() {
  for (const auto& host : hosts_) RollForHost(*host);
  RollForAggregator();
  RollForOperator();
}

void SimFleet::RollForHost(Host& host) {
  SimRandom& random = world_.random;
  const SimProfile& p = profile_;
  if (Happens(random, p.agent_crash)) CrashAgent(host);
  if (host.agent != nullptr && host.agent_ends_ns == 0 && Happens(random, p.agent_end)) {
    world_.trace.Note("{} is told to end", host.host.info.agent_id);
    host.agent->BeginToEnd();
    host.agent_ends_ns = world_.clock.MonotonicNs() + random.Between(20, 3'000) * kSimMs;
  }
  if (host.agent != nullptr && Happens(random, p.host_crash)) CrashHost(host);
  if (!host.host.link.blocked && Happens(random, p.block)) {
    Block(host, random.Between(100, random.Chance(200) ? 25'000 : 3'000) * kSimMs);
  }
  if (Happens(random, p.break_calls)) {
    world_.trace.Note("calls of {} break", host.host.info.instance_id);
    network_.BreakCalls(host.host.link);
  }
  RollForWorkers(host);
  RollForDisk(host);
}

void SimFleet::RollForWorkers(Host& host) {
  SimRandom& random = world_.random;
  const SimProfile& p = profile_;
  auto& workers = host.host.workers;
  if (workers.empty()) return;
  SimWorker& worker = *workers[random.Between(0, workers.size() - 1)];
  const auto gone = [&](bool in_good_order) {
    if (!worker.alive() || workers.size() >= kWorkersMax) return;
    if (in_good_order) {
      worker.Exit();
    } else {
      worker.Die();
    }
    AddWorker(host);  // a launcher starts it again
    // Without an agent nobody holds what it left.
    if (host.agent == nullptr) LoseDeadWorkers(host);
  };
  if (Happens(random, p.stall)) worker.StallDrain(random.Between(100, 5'000) * kSimMs);
  if (Happens(random, p.burst)) worker.Burst(random.Between(10, 1'000));
  if (Happens(random, p.worker_die)) {
    gone(false);
  } else if (Happens(random, p.worker_exit)) {
    gone(true);
  }
}

void SimFleet::RollForDisk(Host& host) {
  SimRandom& random = world_.random;
  if (host.disk_heals_ns != 0 || !Happens(random, profile_.disk_fault)) return;
  FakeFileSystem& disk = host.host.disk;
  using Operation = FakeFileSystem::Operation;
  const auto fails = [&](Operation operation) {
    disk.Fail(operation, absl::UnavailableError("input/output error"),
              random.Chance(500) ? 1 : ~uint64_t{0});
  };
  const uint64_t kind = random.Between(0, 7);
  switch (kind) {
    case 0:
    case 1:
      disk.SetCapacity(disk.bytes() + random.Between(0, 4'096));
      break;
    case 2:
      disk.SetReadOnly(true);
      host.host.was_read_only = true;
      break;
    case 3:
      fails(Operation::kAppend);
      break;
    case 4:
      fails(Operation::kSync);
      break;
    case 5:
      fails(Operation::kRead);
      break;
    case 6:
      fails(random.Chance(500) ? Operation::kCreate : Operation::kRename);
      break;
    default:
      host.host.disk_operation_ns = random.Between(10, 1'000) * kSimMs;
  }
  host.disk_heals_ns = world_.clock.MonotonicNs() + random.Between(100, 6'000) * kSimMs;
  world_.trace.Note("the disk of {} goes wrong, as kind {}", host.host.info.instance_id, kind);
}

void SimFleet::RollForAggregator() {
  SimRandom& random = world_.random;
  if (Happens(random, profile_.aggregator_crash)) CrashAggregator(random.Chance(500));
  if (disk_heals_ns_ == 0 && Happens(random, profile_.store_fault)) {
    const bool full = random.Chance(700);
    world_.trace.Note("the store's disk {}", full ? "is full" : "fails");
    disk_.SetFault(full ? CrashDisk::Fault::kNoSpace : CrashDisk::Fault::kIoError);
    disk_heals_ns_ = world_.clock.MonotonicNs() + random.Between(100, 5'000) * kSimMs;
  }
  if (aggregator_ != nullptr && Happens(random, profile_.slow_store)) {
    aggregator_->SetCommitNs(random.Between(20, 2'000) * kSimMs);
    commit_heals_ns_ = world_.clock.MonotonicNs() + random.Between(1, 5) * kSimSecond;
  }
}

void SimFleet::RollForOperator() {
  if (aggregator_ == nullptr) return;
  SimRandom& random = world_.random;
  Coordinator& coordinator = aggregator_->coordinator();
  if (Happens(random, profile_.start_capture) &&
      coordinator.Running().size() < (profile_.calm ? kRunningCalmMax : kRunningMax) &&
      captures_.size() < kCapturesMax) {
    CaptureSpec spec;
    spec.include_framework = false;
    if (random.Chance(300)) spec.duration_ns = random.Between(200, 8'000) * kSimMs;
    if (random.Chance(200)) spec.instance_ids = {hosts_.front()->host.info.instance_id};
    const auto started = coordinator.StartCapture(spec);
    world_.trace.Note("capture {} is asked for",
                      started.ok() ? started->id.ToString() : "(failed)");
    if (started.ok()) captures_[started->id] = CaptureState::kRecording;
  }
  if (Happens(random, profile_.stop_capture)) {
    const std::vector<CaptureRecord> running = coordinator.Running();
    if (!running.empty()) {
      const CaptureId id = running[random.Between(0, running.size() - 1)].id;
      world_.trace.Note("capture {} is to stop", id.ToString());
      coordinator.StopCapture(id).IgnoreError();
    }
  }
  if (!Happens(random, profile_.delete_capture)) return;
  const auto ended = std::find_if(captures_.begin(), captures_.end(),
                                  [](const auto& entry) { return HasEnded(entry.second); });
  if (ended == captures_.end()) return;
  const CaptureId id = ended->first;
  ledger_.OnDeleted(id);
  coordinator.Forget(id);
  const auto deleted = aggregator_->store().DeleteCapture(id);
  world_.trace.Note("capture {} is deleted: {}", id.ToString(), deleted.ok() ? "yes" : "no");
  if (deleted.ok()) captures_.erase(ended);
}

}  // namespace neurontrace
