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

// Limits how often each caller may call: `per_second` on average and `burst` at once, a token
// bucket per caller. Refused calls do not count. Remembers limits::kCallersCountedMax callers.
// Beyond that the one that has not called for the longest time is forgotten and may use a burst
// again; this is counted if its allowance was not full. Any thread. The state of a bucket is one
// number, the time at which it is full again (the generic cell rate algorithm).
class CallRates {
 public:
  // Values of 0 count as 1.
  struct Rate {
    uint32_t per_second = 1;
    uint32_t burst = 1;
  };
  // Everything passed by reference must outlive this. `whose` describes the limit in messages, such
  // as "--calls-per-second of the aggregator". `forgotten` counts callers that were forgotten
  // early.
  CallRates(const Clock& clock, Rate rate, std::string whose, prometheus::Counter& forgotten,
            size_t callers_max = limits::kCallersCountedMax);

  // Fails with RESOURCE_EXHAUSTED and says when to try again. Counts one call if it is permitted.
  // Takes constant time.
  absl::Status Take(const std::string& caller);

 private:
  struct Account {
    std::string caller;
    uint64_t due_ns = 0;  // monotonic; when the whole allowance is available again
  };
  using Accounts = std::list<Account>;  // most recent caller first

  // Returns the account of a caller, which becomes the most recent one. May forget the oldest one.
  // The reference is valid until the next call.
  Account& AccountOf(const std::string& caller, uint64_t now_ns) NT_REQUIRES(mutex_);

  const Clock& clock_;
  const Rate rate_;
  const std::string caller_of_;
  const size_t callers_max_;
  const uint64_t call_ns_;   // time that one call costs
  const uint64_t burst_ns_;  // time that a whole burst costs
  prometheus::Counter& forgotten_;
  // Held for a few operations on memory.
  Mutex mutex_;
  Accounts accounts_ NT_GUARDED_BY(mutex_);
  // Points into accounts_.
  std::unordered_map<std::string, Accounts::iterator> by_caller_ NT_GUARDED_BY(mutex_);
};

// Returns neurontrace_aggregator_calls_refused_total for one reason. Registering the same counter
// again returns the existing one.
prometheus::Counter& RefusedCalls(prometheus::Registry& registry, const char* reason);

}  // namespace neurontrace
