// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/crash_env.h"
#include "tests/sim/sim_agent.h"
#include "tests/sim/sim_aggregator.h"
#include "tests/sim/sim_worker.h"

namespace neurontrace {

// What one seed stands for: the size of the world and how unkind it is. Chances are of a million,
// for each step of 10 ms.
struct SimProfile {
  uint64_t seed = 1;
  uint64_t chaos_ns = 20 * kSimSecond;
  uint32_t hosts = 2;
  uint32_t workers_per_host = 2;
  SimWorker::Options worker;
  SimAgent::Options agent;
  SimAggregator::Options aggregator;
  uint64_t latency_ns = 200'000;
  uint64_t jitter_ns = 1'000'000;
  uint64_t disk_operation_ns = 500'000;

  uint32_t agent_crash = 0;
  uint32_t agent_end = 0;
  uint32_t host_crash = 0;
  uint32_t aggregator_crash = 0;
  uint32_t block = 0;
  uint32_t break_calls = 0;
  uint32_t worker_die = 0;
  uint32_t worker_exit = 0;
  uint32_t stall = 0;
  uint32_t burst = 0;
  uint32_t disk_fault = 0;  // of a host's disk
  uint32_t store_fault = 0;
  uint32_t slow_store = 0;
  uint32_t corrupt_per_mille = 0;  // of envelopes
  uint32_t start_capture = 3'000;
  uint32_t stop_capture = 2'000;
  uint32_t delete_capture = 0;

  // No faults at all: then every capture has to be complete.
  bool calm = false;
};

SimProfile MakeProfile(uint64_t seed);

struct SimResult {
  std::vector<std::string> violations;  // none: every invariant held
  uint64_t trace_hash = 0;
  double simulated_seconds = 0;
  uint64_t rows = 0;
  uint64_t rows_stored = 0;
  uint64_t captures = 0;
  uint64_t captures_complete = 0;
  uint64_t crashes = 0;
};

// A whole fleet in one process: agents with workers, the network, one aggregator. The seed decides
// what there is, what happens and when; first everything that a cluster does, then nothing breaks
// any more, and all captures have to end. `store` is what SimAggregator::NewStore gives; one fleet
// of eight makes its own again. Run once.
class SimFleet {
 public:
  SimFleet(const SimProfile& profile, const CrashDisk::Contents& store, bool verbose);
  ~SimFleet();

  SimResult Run();

 private:
  struct Host {
    explicit Host(uint64_t seed) : host(seed) {}

    SimHost host;
    SimAgent::Options agent_options;
    std::unique_ptr<SimAgent> agent;
    uint64_t agent_returns_ns = 0;  // while there is none
    uint64_t agent_ends_ns = 0;     // 0: it was not ordered to
    uint64_t unblocks_ns = 0;       // while its link is blocked
    uint64_t disk_heals_ns = 0;     // 0: its disk is well
    uint32_t boots = 1;
    uint32_t pids = 100;
  };

  void Step();
  void Settle();

  // Faults and orders.
  void RollTheDice();
  void RollForHost(Host& host);
  void RollForWorkers(Host& host);
  void RollForDisk(Host& host);
  void RollForAggregator();
  void RollForOperator();
  void CrashAgent(Host& host);
  void CrashHost(Host& host);
  void CrashAggregator(bool power_lost);
  void StartAggregator();
  void StartAgent(Host& host);
  void AddWorker(Host& host);
  void DropDeadWorkers(Host& host);
  void Block(Host& host, uint64_t ns);
  void Heal();

  // Invariants.
  void CheckBounds();
  void CheckCaptures();
  void CheckEverything();

  const SimProfile profile_;
  SimWorld world_;
  SimLedger ledger_;
  CrashDisk disk_;
  SimNetwork network_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::unique_ptr<SimAggregator> aggregator_;
  uint64_t aggregator_returns_ns_ = 0;
  uint64_t disk_heals_ns_ = 0;
  uint64_t commit_heals_ns_ = 0;
  std::map<CaptureId, CaptureState> captures_;  // that were started; as last seen
  uint64_t crashes_ = 0;
};

}  // namespace neurontrace
