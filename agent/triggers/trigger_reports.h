// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <utility>

#include "agent/triggers/trigger_sink.h"
#include "lib/base/clock.h"
#include "lib/trace/ids.h"
#include "lib/trace/trigger_rule.h"

namespace neurontrace {

// Reports rules that fire to the aggregator, each at most once a second for the same worker. On the
// agent's sequence.
class TriggerReports {
 public:
  struct Counters {
    uint64_t fired = 0;        // reported
    uint64_t suppressed = 0;   // within a second of one, or beyond limits::kTriggerReportsKeptMax
    uint64_t undelivered = 0;  // there was no aggregator
  };
  // kUndelivered: it was not sent and does not count as recent, so the next one is tried at once.
  enum class Outcome { kReported, kSuppressed, kUndelivered };

  // Both outlive it.
  TriggerReports(const Clock& clock, TriggerSink& sink) : clock_(clock), sink_(sink) {}

  // Sends a report, with the current time filled in. The cause may be any text; it is cleaned and
  // cut.
  Outcome Report(TriggerFired fired);
  const Counters& counters() const { return counters_; }

 private:
  using Key = std::pair<std::string, WorkerIdentity>;

  const Clock& clock_;
  TriggerSink& sink_;
  // Pairs of rule and worker that were reported within limits::kTriggerReportIntervalNs.
  std::set<Key> lately_;
  std::deque<std::pair<uint64_t, Key>> by_time_;  // the same, monotonic
  Counters counters_;
};

}  // namespace neurontrace
