// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/call_rates.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/health/metric_builders.h"

namespace neurontrace {

CallRates::CallRates(const Clock& clock, Rate rate, std::string whose,
                     prometheus::Counter& forgotten, size_t callers_max)
    : clock_(clock),
      rate_(rate),
      caller_of_(std::move(whose)),
      callers_max_(callers_max),
      call_ns_(kNsPerSecond / std::max<uint32_t>(rate.per_second, 1)),
      burst_ns_(call_ns_ * std::max<uint32_t>(rate.burst, 1)),
      forgotten_(forgotten) {}

// A list and an index by name: moving to the front and forgetting the last one take constant time.
CallRates::Account& CallRates::AccountOf(const std::string& caller, uint64_t now_ns) {
  const auto known = by_caller_.find(caller);
  assert(by_caller_.size() == accounts_.size());
  if (known != by_caller_.end()) {
    accounts_.splice(accounts_.begin(), accounts_, known->second);
    return accounts_.front();
  }
  if (accounts_.size() >= callers_max_) {
    // A caller whose allowance was full loses nothing by being forgotten.
    if (accounts_.back().due_ns > now_ns) forgotten_.Increment();
    by_caller_.erase(accounts_.back().caller);
    accounts_.pop_back();
  }
  accounts_.push_front({.caller = caller});
  by_caller_.emplace(caller, accounts_.begin());
  return accounts_.front();
}

// A call moves the time at which the bucket is full by the cost of a call. It is refused if that
// would be farther away than a whole burst.
absl::Status CallRates::Take(const std::string& caller) {
  const MutexLock lock(mutex_);
  const uint64_t now_ns = clock_.MonotonicNs();
  Account& account = AccountOf(caller, now_ns);
  const uint64_t due_ns = std::max(account.due_ns, now_ns) + call_ns_;
  // A refused call does not change the account.
  if (due_ns <= now_ns + burst_ns_) {
    account.due_ns = due_ns;
    return absl::OkStatus();
  }
  const uint64_t wait_ns = due_ns - now_ns - burst_ns_;
  return ResourceExhausted("{} exceeds {} calls per second ({}); try again in {:.2f} s", caller,
                           rate_.per_second, caller_of_,
                           std::max(0.01, static_cast<double>(wait_ns) / kNsPerSecond));
}

prometheus::Counter& RefusedCalls(prometheus::Registry& registry, const char* reason) {
  return MakeCounter(registry, "neurontrace_aggregator_calls_refused_total",
                     "Calls refused because of the caller or its call rate", {{"reason", reason}});
}

}  // namespace neurontrace
