// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lib/trace/ids.h"

namespace neurontrace {

// Values are on the wire and equal those of neurontrace.v1: never change one.
enum class TriggerKind : uint8_t {
  kUnspecified = 0,
  kSlowExecution = 1,
  kSilentCore = 2,
  kWorkerDied = 3,
  kPost = 4,
};

// What begins a capture by itself: the fields of neurontrace.v1.TriggerRule. A plain value.
struct TriggerRule {
  std::string name;
  TriggerKind kind = TriggerKind::kUnspecified;
  std::string job;          // only workers of it; empty: any
  double times_median = 0;  // kSlowExecution
  uint64_t silent_ns = 0;   // kSilentCore
  uint64_t cool_down_ns = 0;
  uint32_t per_hour_max = 0;
  uint64_t last_ns = 0;      // recorded from before it fired, where a flight recorder is on …
  uint64_t duration_ns = 0;  // … else so long after
  friend bool operator==(const TriggerRule&, const TriggerRule&) = default;
};

struct TriggerFired {
  std::string rule;
  std::string cause;      // for people
  std::string job;        // of the worker it is about; empty where there is none
  WorkerIdentity worker;  // instance_id alone where there is none
  uint64_t host_realtime_ns = 0;
  friend bool operator==(const TriggerFired&, const TriggerFired&) = default;
};

}  // namespace neurontrace
