// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// The condition of a rule. Values are on the wire and equal those of neurontrace.v1: never change
// one.
enum class TriggerKind : uint8_t {
  kUnspecified = 0,
  kSlowExecution = 1,
  kSilentCore = 2,
  kWorkerDied = 3,
  kPost = 4,
  kVerdict = 5,
};

// A rule that starts captures: the fields of neurontrace.v1.TriggerRule. Checked by
// lib/triggers/trigger_rule_check.h. A plain value.
struct TriggerRule {
  std::string name;
  TriggerKind kind = TriggerKind::kUnspecified;
  std::string job;          // only workers of this job; empty: any
  double times_median = 0;  // kSlowExecution
  uint64_t silent_ns = 0;   // kSilentCore
  // kVerdict: the kinds of verdicts, in the grammar of lib/triggers/verdict_patterns.h, and how
  // many peers of the suspects are recorded beside them.
  std::string verdicts;
  uint32_t peers = 0;
  bool stacks = false;  // take the stacks of the workers that it is about
  // How often it may fire: the time after it fired in which it does not, and the captures in one
  // hour.
  uint64_t cool_down_ns = 0;
  uint32_t per_hour_max = 0;
  uint64_t last_ns = 0;      // how far back it records if a flight recorder runs …
  uint64_t duration_ns = 0;  // … otherwise how long it records from then on
  friend bool operator==(const TriggerRule&, const TriggerRule&) = default;
};

// The report of an agent, or of the aggregator itself, that a rule's condition was met.
struct TriggerFired {
  std::string rule;
  std::string cause;      // for people
  std::string job;        // of the worker that it is about; empty: none
  WorkerIdentity worker;  // instance_id alone: about no single worker
  // Workers that the capture is about, besides the job; empty: the whole job. Never from the wire.
  CaptureSpec::Selection narrowed;
  std::vector<WorkerIdentity> suspects;  // as `narrowed`, by process; never from the wire
  uint64_t host_realtime_ns = 0;
  friend bool operator==(const TriggerFired&, const TriggerFired&) = default;
};

}  // namespace neurontrace
