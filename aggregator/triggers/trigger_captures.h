// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/trigger_rule.h"

namespace neurontrace {

// The captures of the aggregator, as TriggerEngine starts them and asks about them. Called on the
// engine's sequence. Start may lead to TriggerEngine::OnNotBegun before it returns.
class TriggerCaptures {
 public:
  // A continuous capture; without an id: none.
  struct Continuous {
    CaptureId id;
    uint64_t retention_ns = 0;  // 0: limited by size alone
  };

  virtual ~TriggerCaptures() = default;

  // Starts a capture; fails as Coordinator::StartCapture does, and if the capture did not begin.
  virtual absl::StatusOr<CaptureId> Start(const CaptureSpec& spec) = 0;
  // Returns true until the capture has ended.
  virtual bool IsRunning(const CaptureId& capture) const = 0;
  // Returns the flight recorder that holds what a capture of this spec would select; empty: none,
  // or several. A snapshot of it is only possible while it records.
  virtual CaptureId FlightRecorderOf(const CaptureSpec& spec) const = 0;
  // Returns a capture that records all that the spec selects and is not suspended for another;
  // empty: none.
  virtual CaptureId RecorderOf(const CaptureSpec& spec) const = 0;
  // Returns the continuous capture that records everything the spec selects, and is suspended for
  // the trigger's capture.
  virtual Continuous ContinuousOf(const CaptureSpec& spec) const = 0;
  // Asks for the stacks of these workers, for a capture that this rule fired for. The log and the
  // capture have the result.
  virtual void CollectStacks(const CaptureId& capture, const TriggerRule& rule,
                             const std::string& cause, std::vector<WorkerIdentity> workers) = 0;
};

}  // namespace neurontrace
