// SPDX-License-Identifier: Apache-2.0
#include "agent/triggers/core_watch.h"

#include <algorithm>

namespace neurontrace {
namespace {

// Workers are looked at several times a second.
constexpr uint64_t kDrainedLatelyNs = 1'000'000'000;

}  // namespace

WatchedCore& WatchedWorker::CoreAt(uint32_t nc_idx) {
  if (cores.size() <= nc_idx) cores.resize(nc_idx + 1);
  return cores[nc_idx];
}

void WatchedWorker::Rest() {
  for (WatchedCore& core : cores) {
    core.last_ns = 0;
    core.told.clear();
    if (core.executions != nullptr) core.executions->ForgetOpen();
  }
}

std::vector<SilentCore> FindSilentCores(std::map<WorkerIdentity, WatchedWorker>& workers,
                                        const std::string& rule, const std::string& job,
                                        uint64_t silent_ns, uint64_t now_ns) {
  std::map<std::string, uint64_t> newest_ns;  // by job
  for (const auto& [identity, worker] : workers) {
    uint64_t& newest = newest_ns[worker.job];
    for (const WatchedCore& core : worker.cores) newest = std::max(newest, core.last_ns);
  }
  std::vector<SilentCore> silent;
  for (auto& [identity, worker] : workers) {
    if (!job.empty() && job != worker.job) continue;
    if (worker.drained_ns == 0 || now_ns - worker.drained_ns > kDrainedLatelyNs) continue;
    // Whoever had that event is another: a silent one's last is older.
    if (now_ns - newest_ns[worker.job] >= silent_ns / 2) continue;
    for (uint32_t nc_idx = 0; nc_idx < worker.cores.size(); ++nc_idx) {
      WatchedCore& core = worker.cores[nc_idx];
      if (core.last_ns == 0 || now_ns - core.last_ns < silent_ns) continue;
      if (!core.told.insert(rule).second) continue;
      silent.push_back({identity, worker.job, nc_idx, core.worker_gid, now_ns - core.last_ns});
    }
  }
  return silent;
}

}  // namespace neurontrace
