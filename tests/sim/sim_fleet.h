// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/crash_env.h"
#include "tests/sim/sim_agent.h"
#include "tests/sim/sim_aggregator.h"
#include "tests/sim/sim_profile.h"

namespace neurontrace {

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
// of eight makes its own anew. Run once.
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
    uint64_t agent_ends_ns = 0;     // 0: it was not told to
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
  void LoseDeadWorkers(Host& host);
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
