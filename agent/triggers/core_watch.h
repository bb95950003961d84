// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/triggers/execution_medians.h"
#include "trace/ids.h"

namespace neurontrace {

// One core of a worker, as rules see it.
struct WatchedCore {
  uint64_t last_ns = 0;  // when an event of it was read last, monotonic; 0: never
  int64_t worker_gid = -1;
  std::unique_ptr<ExecutionMedians> executions;  // only where a rule looks at them
  std::set<std::string> told;                    // rules that have fired of its silence
};

struct WatchedWorker {
  std::string job;
  uint64_t drained_ns = 0;         // when all that it had was read last, monotonic; 0: never
  std::vector<WatchedCore> cores;  // by nc_idx

  // At most limits::kCoresPerWorkerMax of them, as the decoder sees to.
  WatchedCore& CoreAt(uint32_t nc_idx);
  // Nothing is expected of any core until it has an event again.
  void Rest();
};

// A core that was silent for `silent_ns`, or longer, while others of its job were not.
struct SilentCore {
  WorkerIdentity worker;
  std::string job;
  uint32_t nc_idx = 0;
  int64_t worker_gid = -1;
  uint64_t ns = 0;
};

// Looks through all cores at `now_ns`. Those told of `rule` before are passed over until they have
// an event again; workers whose buffers were not read to their end lately are not judged. `job`
// empty: of any.
std::vector<SilentCore> FindSilentCores(std::map<WorkerIdentity, WatchedWorker>& workers,
                                        const std::string& rule, const std::string& job,
                                        uint64_t silent_ns, uint64_t now_ns);

}  // namespace neurontrace
