// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "trace/trigger_rule.h"

namespace neurontrace {

// Tells the aggregator of rules that fire, one of them no more than once a second of the same
// worker. On the agent's sequence.
class TriggerReports {
 public:
  // False: there is no aggregator that hears it.
  using Send = std::function<bool(const TriggerFired&)>;
  struct Counters {
    uint64_t fired = 0;       // told
    uint64_t suppressed = 0;  // within a second of one, or beyond limits::kTriggerReportsKeptMax
    uint64_t unheard = 0;     // there was no aggregator
  };
  enum class Outcome { kTold, kSuppressed, kUnheard };

  // `clock` outlives it.
  TriggerReports(const Clock& clock, Send send) : clock_(clock), send_(std::move(send)) {}

  // The cause may hold anything. The time is put in here.
  Outcome Tell(TriggerFired fired);
  const Counters& counters() const { return counters_; }

 private:
  using Key = std::pair<std::string, WorkerIdentity>;

  const Clock& clock_;
  const Send send_;
  std::set<Key> lately_;
  std::deque<std::pair<uint64_t, Key>> by_time_;  // the same, monotonic
  Counters counters_;
};

}  // namespace neurontrace
