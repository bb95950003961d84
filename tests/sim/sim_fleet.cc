// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_fleet.h"

#include <algorithm>
#include <utility>

namespace neurontrace {
namespace {

// A fault is there in about half of the seeds, so that each is also seen without the others.
uint32_t Maybe(SimRandom& random, uint32_t most) {
  return random.Chance(500) ? static_cast<uint32_t>(random.Between(1, most)) : 0;
}

// Where no fault is meant to happen, what is made between two drains has to fit into the runtime's
// ring, and what waits for an agent into the tap's buffer.
void MakeRoom(SimWorker::Options& worker) {
  const uint64_t between_ns = worker.drain_ns + 100 * kSimMs;
  worker.runtime_ring_rows =
      std::max<size_t>(worker.runtime_ring_rows, worker.rows_per_second * between_ns / kSimSecond);
  worker.tap_bytes = std::max(worker.tap_bytes, SimWorker::Options().tap_bytes);
}

constexpr uint64_t kStepNs = 10 * kSimMs;
// From the last fault to the end of every capture: an agent that is silent is given up on after a
// minute, and reconnecting takes up to ten seconds.
constexpr uint64_t kSettleMaxNs = 150 * kSimSecond;
// What may be over a budget: the chunk or message that was on its way in when it was reached.
constexpr size_t kChunkSlackBytes = 1u << 20;

std::string_view ToString(CaptureState state) {
  if (state == CaptureState::kComplete) return "complete";
  return state == CaptureState::kNotBegun ? "not begun" : "incomplete";
}

// Asked for before any agent was connected, or stopped before it began: nobody recorded a thing.
bool IsUnstartedForGoodReason(const CaptureRecord& record) {
  if (record.state != CaptureState::kNotBegun) return false;
  return record.agents.empty() || (!record.end_warnings.empty() &&
                                   record.end_warnings.front() == "it was stopped before it began");
}

constexpr size_t kRunningMax = 3;
// A worker records for one capture at a time.
constexpr size_t kRunningCalmMax = 1;
constexpr size_t kCapturesMax = 12;
constexpr size_t kWorkersMax = 6;

bool Happens(SimRandom& random, uint32_t per_million) {
  return per_million > 0 && random.Next64() % 1'000'000 < per_million;
}

}  // namespace

SimProfile MakeProfile(uint64_t seed) {
  SimRandom random(seed ^ 0x5eed);
  SimProfile profile;
  profile.seed = seed;
  profile.chaos_ns = random.Between(4, 24) * kSimSecond;
  profile.hosts = static_cast<uint32_t>(random.Between(1, 3));
  profile.workers_per_host = static_cast<uint32_t>(random.Between(1, 3));
  profile.worker.cores = static_cast<uint32_t>(random.Between(1, 3));
  profile.worker.rows_per_second = random.Between(20, 400);
  profile.worker.runtime_ring_rows = random.Between(16, 512);
  profile.worker.drain_ns = random.Between(20, 100) * kSimMs;
  profile.worker.first_id_is_zero = random.Chance(200);
  profile.latency_ns = random.Between(100'000, 20 * kSimMs);
  profile.jitter_ns = random.Chance(500) ? 0 : random.Between(0, 100 * kSimMs);
  if (random.Chance(300)) {
    // Room for a few of the largest documents of each core.
    const size_t documents = profile.worker.cores * 40 * profile.worker.runtime_ring_rows;
    profile.worker.tap_bytes = 4 * documents + (random.Between(8, 64) << 10);
  }
  if (random.Chance(300)) profile.agent.queue_bytes = random.Between(2, 32) << 10;
  if (random.Chance(300)) profile.agent.unacked_max = static_cast<uint32_t>(random.Between(1, 8));
  if (random.Chance(200)) profile.aggregator.budget_bytes = random.Between(1, 16) << 10;
  profile.agent.has_spool = random.Chance(850);
  if (random.Chance(300)) {
    profile.agent.spool.bytes_max = random.Between(128, 512) << 10;
    profile.agent.spool.capture_bytes_max = profile.agent.spool.bytes_max / random.Between(1, 2);
  }
  if (random.Chance(500)) profile.agent.spool.when_full = Spool::WhenFull::kRefuseNewest;
  profile.disk_operation_ns = random.Between(10'000, 20 * kSimMs);
  if (seed % 16 == 0) {
    profile.calm = true;
    MakeRoom(profile.worker);
    return profile;
  }
  profile.agent_crash = Maybe(random, 2'000);
  profile.agent_end = Maybe(random, 1'000);
  profile.host_crash = Maybe(random, 400);
  profile.aggregator_crash = Maybe(random, 2'000);
  profile.block = Maybe(random, 2'000);
  profile.break_calls = Maybe(random, 5'000);
  profile.worker_die = Maybe(random, 1'000);
  profile.worker_exit = Maybe(random, 1'000);
  profile.stall = Maybe(random, 2'000);
  profile.burst = Maybe(random, 5'000);
  profile.disk_fault = Maybe(random, 2'000);
  profile.store_fault = Maybe(random, 1'000);
  profile.slow_store = Maybe(random, 1'000);
  profile.corrupt_per_mille = Maybe(random, 30);
  profile.delete_capture = Maybe(random, 2'000);
  return profile;
}

SimFleet::SimFleet(const SimProfile& profile, const CrashDisk::Contents& store, bool verbose)
    : profile_(profile),
      world_(profile.seed, verbose),
      // A runtime that numbers from 0 is known by the number 0: one that was overwritten is not
      // missed.
      ledger_(world_, profile.worker.first_id_is_zero ? profile.worker.cores : 0),
      disk_(profile.seed, profile.seed % 8 == 1 ? "" : SimAggregator::kStorePath, store),
      network_(world_) {
  for (uint32_t i = 0; i < profile_.hosts; ++i) {
    auto host = std::make_unique<Host>(profile.seed * 64 + i);
    AgentInfo& info = host->host.info;
    info.protocol_version = kProtocolVersion;
    info.agent_id = fmt::format("agent-{}", i);
    info.instance_id = fmt::format("i-{}", i);
    info.boot_id = "boot-1";
    info.host_name = fmt::format("host-{}", i);
    host->host.link.latency_ns = profile_.latency_ns;
    host->host.link.jitter_ns = profile_.jitter_ns;
    host->agent_options = profile_.agent;
    host->host.disk_operation_ns = profile_.disk_operation_ns;
    hosts_.push_back(std::move(host));
  }
}

SimFleet::~SimFleet() {
  network_.SetServer(nullptr, 0);
  for (const auto& host : hosts_) host->agent.reset();
  aggregator_.reset();
}

SimResult SimFleet::Run() {
  network_.SetCorruption(profile_.corrupt_per_mille);
  StartAggregator();
  for (const auto& host : hosts_) {
    for (uint32_t i = 0; i < profile_.workers_per_host; ++i) AddWorker(*host);
    StartAgent(*host);
  }
  const uint64_t chaos_end_ns = world_.clock.MonotonicNs() + profile_.chaos_ns;
  while (world_.clock.MonotonicNs() < chaos_end_ns && world_.trace.violations().empty()) {
    Step();
    RollTheDice();
  }
  if (world_.trace.violations().empty()) Settle();
  SimResult result;
  result.violations = world_.trace.violations();
  result.trace_hash = world_.trace.hash();
  result.simulated_seconds = world_.trace.Seconds();
  result.rows = ledger_.rows();
  result.rows_stored = ledger_.rows_stored();
  result.captures = captures_.size();
  result.captures_complete = static_cast<uint64_t>(
      std::count_if(captures_.begin(), captures_.end(),
                    [this](const auto& entry) { return ledger_.IsComplete(entry.first); }));
  result.crashes = crashes_;
  return result;
}

void SimFleet::Step() {
  for (const auto& host : hosts_) {
    for (const auto& worker : host->host.workers) worker->Advance();
  }
  world_.runner.AdvanceNs(kStepNs);
  const uint64_t now_ns = world_.clock.MonotonicNs();
  if (aggregator_ == nullptr && now_ns >= aggregator_returns_ns_) StartAggregator();
  if (disk_heals_ns_ != 0 && now_ns >= disk_heals_ns_) {
    disk_heals_ns_ = 0;
    world_.trace.Log("the store's disk works again");
    disk_.SetFault(CrashDisk::Fault::kNone);
  }
  // RocksDB does not write a log again that met an error other than a full disk.
  if (aggregator_ != nullptr && aggregator_->CannotContinue()) {
    world_.trace.Log("the aggregator ends, as its store takes no writes");
    CrashAggregator(false);
  }
  if (commit_heals_ns_ != 0 && now_ns >= commit_heals_ns_) {
    if (aggregator_ != nullptr) aggregator_->SetCommitNs(profile_.aggregator.commit_ns);
    commit_heals_ns_ = 0;
  }
  for (const auto& host : hosts_) {
    if (host->agent_ends_ns != 0 && now_ns >= host->agent_ends_ns) CrashAgent(*host);
    if (host->agent == nullptr && now_ns >= host->agent_returns_ns) StartAgent(*host);
    if (host->disk_heals_ns != 0 && now_ns >= host->disk_heals_ns) {
      world_.trace.Log("the disk of {} works again", host->host.info.instance_id);
      host->disk_heals_ns = 0;
      host->host.disk.Heal();
      host->host.disk.SetReadOnly(false);
      host->host.disk.SetCapacity(~uint64_t{0});
      host->host.disk_operation_ns = profile_.disk_operation_ns;
    }
    if (host->host.link.blocked && now_ns >= host->unblocks_ns) {
      world_.trace.Log("{} is reached again", host->host.info.instance_id);
      network_.Unblock(host->host.link);
    }
  }
  CheckBounds();
  CheckCaptures();
}

// --- What happens --------------------------------------------------------------------------------

void SimFleet::Settle() {
  Heal();
  const uint64_t deadline_ns = world_.clock.MonotonicNs() + kSettleMaxNs;
  while (world_.clock.MonotonicNs() < deadline_ns && world_.trace.violations().empty()) {
    Step();
    if (aggregator_ == nullptr) continue;
    for (const CaptureRecord& capture : aggregator_->coordinator().Running()) {
      if (capture.state == CaptureState::kRecording) {
        aggregator_->coordinator().StopCapture(capture.id).IgnoreError();
      }
    }
    const bool is_quiet = aggregator_->coordinator().Running().empty() &&
                          std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) {
                            return host->agent != nullptr && host->agent->queue_chunks() == 0;
                          });
    if (is_quiet) {
      CheckEverything();
      return;
    }
  }
  if (!world_.trace.violations().empty()) return;
  world_.trace.Violate("no progress: {} captures still run {} s after the last fault",
                       aggregator_ == nullptr ? 0 : aggregator_->coordinator().Running().size(),
                       kSettleMaxNs / kSimSecond);
  for (const auto& host : hosts_) {
    world_.trace.Log("{} has {} chunks, {} under way", host->host.info.agent_id,
                     host->agent == nullptr ? 0 : host->agent->queue_chunks(),
                     host->agent == nullptr ? 0 : host->agent->unacked());
  }
}

void SimFleet::Heal() {
  world_.trace.Log("nothing breaks any more");
  network_.SetCorruption(0);
  disk_heals_ns_ = std::min(disk_heals_ns_, world_.clock.MonotonicNs());
  if (aggregator_ != nullptr) aggregator_->SetCommitNs(profile_.aggregator.commit_ns);
  const uint64_t soon_ns = world_.clock.MonotonicNs() + kSimSecond;
  aggregator_returns_ns_ = std::min(aggregator_returns_ns_, soon_ns);
  for (const auto& host : hosts_) {
    host->agent_returns_ns = std::min(host->agent_returns_ns, soon_ns);
    host->unblocks_ns = std::min(host->unblocks_ns, soon_ns);
    host->disk_heals_ns = std::min(host->disk_heals_ns, soon_ns);
  }
}

void SimFleet::StartAggregator() {
  auto started = SimAggregator::Start(world_, ledger_, disk_.Open(), profile_.aggregator);
  if (!started.ok()) {
    // A disk that fails is no reason to give up: it is started again, as a service manager does.
    disk_.Crash(false);
    aggregator_returns_ns_ = world_.clock.MonotonicNs() + kSimSecond;
    world_.trace.Log("the aggregator does not start");
    if (disk_heals_ns_ == 0) {
      world_.trace.Violate("the aggregator does not start: {}", started.status().ToString());
    }
    return;
  }
  aggregator_ = *std::move(started);
  world_.trace.Log("the aggregator starts");
  ledger_.CompareWithStore(aggregator_->store());
  network_.SetServer(aggregator_.get(), 0);
}

void SimFleet::CrashAggregator(bool power_lost) {
  if (aggregator_ == nullptr) return;
  ++crashes_;
  world_.trace.Log("the aggregator crashes{}", power_lost ? ", and its machine" : "");
  network_.SetServer(nullptr,
                     power_lost ? world_.random.Between(1, 20) * kSimSecond : profile_.latency_ns);
  disk_.Crash(power_lost);
  aggregator_.reset();
  aggregator_returns_ns_ = world_.clock.MonotonicNs() + world_.random.Between(50, 8'000) * kSimMs;
}

void SimFleet::StartAgent(Host& host) {
  world_.trace.Log("{} starts", host.host.info.agent_id);
  if (host.host.workers.empty()) {
    for (uint32_t i = 0; i < profile_.workers_per_host; ++i) AddWorker(host);
  }
  host.agent = std::make_unique<SimAgent>(world_, ledger_, network_, host.host, host.agent_options);
}

void SimFleet::CrashAgent(Host& host) {
  if (host.agent == nullptr) return;
  ++crashes_;
  world_.trace.Log("{} {}", host.host.info.agent_id, host.agent_ends_ns != 0 ? "ends" : "crashes");
  host.agent.reset();
  host.agent_ends_ns = 0;
  // The page cache stays; files that were open are closed, and locks free.
  host.host.disk.SetCrashLosesNothing(true);
  host.host.disk.Crash();
  host.host.disk.SetCrashLosesNothing(false);
  host.agent_returns_ns = world_.clock.MonotonicNs() + world_.random.Between(50, 8'000) * kSimMs;
  DropDeadWorkers(host);
}

void SimFleet::CrashHost(Host& host) {
  ++crashes_;
  world_.trace.Log("{} loses its power", host.host.info.instance_id);
  network_.Silence(host.host.link);
  host.agent.reset();
  host.agent_ends_ns = 0;
  host.host.disk.Crash();
  host.agent_returns_ns =
      world_.clock.MonotonicNs() + world_.random.Between(1'000, 12'000) * kSimMs;
  for (const auto& worker : host.host.workers) worker->Die();
  DropDeadWorkers(host);
  host.host.info.boot_id = fmt::format("boot-{}", ++host.boots);
}

void SimFleet::DropDeadWorkers(Host& host) {
  std::erase_if(host.host.workers, [](const auto& worker) {
    if (worker->alive()) return false;
    worker->LoseMemory();
    return true;
  });
}

void SimFleet::AddWorker(Host& host) {
  const AgentInfo& info = host.host.info;
  WorkerIdentity identity{.instance_id = info.instance_id,
                          .boot_id = info.boot_id,
                          .pid = ++host.pids,
                          .start_time_ticks = world_.clock.MonotonicNs() / 10'000'000};
  host.host.workers.push_back(
      std::make_unique<SimWorker>(world_, ledger_, std::move(identity), profile_.worker));
}

void SimFleet::Block(Host& host, uint64_t ns) {
  world_.trace.Log("{} is cut off", host.host.info.instance_id);
  host.host.link.blocked = true;
  host.unblocks_ns = world_.clock.MonotonicNs() + ns;
  // Keepalive gives up on what is cut off for long.
  if (ns > 10 * kSimSecond) network_.BreakCalls(host.host.link);
}

// --- Invariants ----------------------------------------------------------------------------------

void SimFleet::CheckBounds() {
  for (const auto& host : hosts_) {
    if (host->agent == nullptr) continue;
    const size_t most = 2 * host->agent_options.queue_bytes + kChunkSlackBytes;
    if (host->agent->queue_bytes() > most) {
      world_.trace.Violate("{} holds {} bytes of chunks, {} are allowed", host->host.info.agent_id,
                           host->agent->queue_bytes(), most);
    }
    if (host->agent->spool_bytes() > host->agent_options.spool.bytes_max + kChunkSlackBytes) {
      world_.trace.Violate("{} has {} bytes in its spool, {} are allowed", host->host.info.agent_id,
                           host->agent->spool_bytes(), host->agent_options.spool.bytes_max);
    }
    if (host->agent->unacked() > host->agent_options.unacked_max) {
      world_.trace.Violate("{} has {} chunks under way", host->host.info.agent_id,
                           host->agent->unacked());
    }
  }
  if (aggregator_ == nullptr) return;
  const size_t most = profile_.aggregator.budget_bytes + 8 * hosts_.size() * kChunkSlackBytes;
  if (aggregator_->bytes_in_flight() > most) {
    world_.trace.Violate("the aggregator holds {} bytes that are not durable, {} are allowed",
                         aggregator_->bytes_in_flight(), most);
  }
}

void SimFleet::CheckCaptures() {
  if (aggregator_ == nullptr) return;
  for (auto& [id, state] : captures_) {
    if (HasEnded(state) || aggregator_->coordinator().FindRunning(id) != nullptr) continue;
    const auto record = aggregator_->store().captures().Get(id);
    if (!record.ok()) {
      world_.trace.Violate("capture {} is gone: {}", id.ToString(), record.status().ToString());
      state = CaptureState::kIncomplete;
      continue;
    }
    state = record->state;
    world_.trace.Log("capture {} ended: {}", id.ToString(), ToString(state));
    for (const std::string& warning : record->warnings) world_.trace.Log("  {}", warning);
    if (!HasEnded(state)) world_.trace.Violate("capture {} ended open", id.ToString());
    ledger_.CheckEnded(*record, aggregator_->store());
    if (profile_.calm && !IsUnstartedForGoodReason(*record) && !ledger_.IsComplete(id)) {
      world_.trace.Violate("nothing happened, and yet a capture is not complete: {}",
                           record->end_warnings.empty() ? "" : record->end_warnings.front());
    }
  }
}

void SimFleet::CheckEverything() {
  ledger_.CompareWithStore(aggregator_->store());
  const auto records = aggregator_->store().captures().List();
  if (!records.ok()) return world_.trace.Violate("{}", records.status().ToString());
  for (const CaptureRecord& record : *records) {
    captures_[record.id] = record.state;
    ledger_.CheckEnded(record, aggregator_->store());
  }
}

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
    world_.trace.Log("{} is told to end", host.host.info.agent_id);
    host.agent->BeginToEnd();
    host.agent_ends_ns = world_.clock.MonotonicNs() + random.Between(20, 3'000) * kSimMs;
  }
  if (host.agent != nullptr && Happens(random, p.host_crash)) CrashHost(host);
  if (!host.host.link.blocked && Happens(random, p.block)) {
    Block(host, random.Between(100, random.Chance(200) ? 25'000 : 3'000) * kSimMs);
  }
  if (Happens(random, p.break_calls)) {
    world_.trace.Log("calls of {} break", host.host.info.instance_id);
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
    if (host.agent == nullptr) DropDeadWorkers(host);
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
  world_.trace.Log("the disk of {} goes wrong, as kind {}", host.host.info.instance_id, kind);
}

void SimFleet::RollForAggregator() {
  SimRandom& random = world_.random;
  if (Happens(random, profile_.aggregator_crash)) CrashAggregator(random.Chance(500));
  if (disk_heals_ns_ == 0 && Happens(random, profile_.store_fault)) {
    const bool full = random.Chance(700);
    world_.trace.Log("the store's disk {}", full ? "is full" : "fails");
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
    spec.filter.include_framework = false;
    if (random.Chance(300)) spec.timing.duration_ns = random.Between(200, 8'000) * kSimMs;
    if (random.Chance(200)) spec.selection.instance_ids = {hosts_.front()->host.info.instance_id};
    const auto started = coordinator.StartCapture(spec);
    world_.trace.Log("capture {} is asked for", started.ok() ? started->id.ToString() : "(failed)");
    if (started.ok()) captures_[started->id] = CaptureState::kRecording;
  }
  if (Happens(random, profile_.stop_capture)) {
    const std::vector<CaptureRecord> running = coordinator.Running();
    if (!running.empty()) {
      const CaptureId id = running[random.Between(0, running.size() - 1)].id;
      world_.trace.Log("capture {} is to stop", id.ToString());
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
  world_.trace.Log("capture {} is deleted: {}", id.ToString(), deleted.ok() ? "yes" : "no");
  if (deleted.ok()) captures_.erase(ended);
}

}  // namespace neurontrace
