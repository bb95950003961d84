// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/trace/ids.h"
#include "lib/trace/suspension.h"

namespace neurontrace {

// Records the times in which a standing capture is suspended in a worker because another capture
// has its tap. Reports the beginning at once, so that the next agent knows it, and repeats the
// report while the suspension lasts. All times are realtime, in ns. Lives on the agent's sequence.
class SuspensionTracker {
 public:
  // How often a suspension that lasts is reported.
  static constexpr uint64_t kReportIntervalNs = 2'000'000'000;

  // Suspends the capture for `other`; its trace is about to end, or there was none. Repeated calls
  // for the same capture have no effect.
  void Suspend(const CaptureId& other, uint64_t now_ns);
  // Handles that a trace of the capture was stopped by command, while the capture continues.
  // Returns the report to record.
  Suspension TraceStopped(uint64_t at_ns);
  // Handles that a trace of the capture began. Returns the complete suspension, if there was one.
  std::optional<Suspension> TraceStarted(uint64_t at_ns);
  // Returns the reports that are due and forgets them; with `is_last`, everything. To be called a
  // few times a second.
  std::vector<Suspension> TakeDue(uint64_t now_ns, bool is_last = false);

 private:
  // Complete suspensions that TakeDue has not returned yet.
  std::vector<Suspension> due_;
  // Since when the capture has been suspended, realtime; nothing while it is not.
  std::optional<uint64_t> since_ns_;
  // Up to when the current suspension has been reported; 0: not at all.
  uint64_t reported_ns_ = 0;
  // The capture that has the tap, or had it last; empty: unknown.
  CaptureId other_;
};

}  // namespace neurontrace
