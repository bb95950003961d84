// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "aggregator/align/core/clock_map.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// A report about deletions.
struct Expired {
  CaptureId capture;
  std::string job;
  bool is_whole = false;  // the whole capture, else the oldest part of a running one
  uint64_t events = 0;    // of a running one
  uint64_t chunks = 0;    // of a whole one
  uint64_t bytes = 0;
};

// What CaptureRetention needs from the aggregator around it. Called on the thread of
// CaptureRetention::Run, and OnExpired also on the thread that destroys CaptureRetention.
class RetentionEnvironment {
 public:
  virtual ~RetentionEnvironment() = default;

  // Returns by how much later something with this timestamp expires, because the clock was set
  // forward since.
  virtual uint64_t ForwardSince(uint64_t stamp_ns) const = 0;
  // Returns the current time of the timescale that clock maps lead to.
  virtual uint64_t ReferenceNs() const = 0;
  // Returns maps from the REALTIME of the present hosts.
  virtual absl::StatusOr<ClockMaps> ReadClockMaps() = 0;
  // Makes everybody else forget this ended capture; returns false if it is still in use.
  virtual bool ReleaseForDeletion(const CaptureId& capture) = 0;
  // Called after a step that took this long. Waits, so that writers get their turn.
  virtual void PauseAfterStep(uint64_t step_ns) = 0;
  // Returns true once the current work should end soon; the rest waits for the next start.
  virtual bool IsEnding() const = 0;
  // Called for every deletion; for a running capture with sums, every few minutes and at its end.
  virtual void OnExpired(const Expired& expired) = 0;
};

}  // namespace neurontrace
