// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {

// How often each caller may call: `per_second` on average, `burst` at once. A call that is refused
// counts for nothing. Of limits::kCallersCountedMax callers that is remembered; beyond, who has not
// called for the longest time is forgotten, and counted where their calls were not all forgiven
// yet: they may call a burst again. Any thread.
class CallRates {
 public:
  struct Rate {
    uint32_t per_second = 1;
    uint32_t burst = 1;
  };
  // What is given by reference outlives it. `whose`: the words for the limit, as
  // "--calls-per-second of the aggregator". `forgotten` counts who was before their time.
  CallRates(const Clock& clock, Rate rate, std::string whose, prometheus::Counter& forgotten,
            size_t callers_max = limits::kCallersCountedMax);

  // RESOURCE_EXHAUSTED says when to try again.
  absl::Status Take(const std::string& caller);

 private:
  struct Account {
    std::string caller;
    uint64_t due_ns = 0;  // monotonic; when all of its calls are forgiven
  };
  using Accounts = std::list<Account>;  // who called last first

  Account& AccountOf(const std::string& caller, uint64_t now_ns) NT_REQUIRES(mutex_);

  const Clock& clock_;
  const Rate rate_;
  const std::string whose_;
  const size_t callers_max_;
  const uint64_t call_ns_;   // that one call takes to be forgiven
  const uint64_t burst_ns_;  // that all of a burst take
  prometheus::Counter& forgotten_;
  Mutex mutex_;
  Accounts accounts_ NT_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Accounts::iterator> by_caller_ NT_GUARDED_BY(mutex_);
};

// The rates of one aggregator: of operators and the like by their names, of agents by the addresses
// that they call from, as they may all show one certificate. Any thread.
class CallLimits {
 public:
  // What is given by reference outlives it.
  CallLimits(const Clock& clock, prometheus::Registry& registry, uint32_t calls_per_second);

  absl::Status AdmitCaller(const std::string& name) { return callers_.Take(name); }
  // `peer` as gRPC says it; one that is refused is counted.
  absl::Status AdmitAgent(const std::string& peer);

 private:
  prometheus::Counter& forgotten_;
  prometheus::Counter& refused_;
  CallRates callers_;
  CallRates agents_;
};

// neurontrace_aggregator_calls_refused_total, for one reason.
prometheus::Counter& RefusedCalls(prometheus::Registry& registry, const char* reason);

}  // namespace neurontrace
