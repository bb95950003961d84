// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lib/trace/capture_record.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// The result of asking all agents of a capture which workers can take part.
struct ArmingOutcome {
  bool begun = false;
  uint64_t arm_ns = 0;   // from the command to the decision
  uint64_t lead_ns = 0;  // from the decision to the beginning; 0 if not begun
};

// Receives what happens to captures, once passed to Coordinator::AddObserver. Called on the
// coordinator's sequence, in the order in which observers were added. Must return quickly and must
// not call back into the coordinator.
class CaptureObserver {
 public:
  virtual ~CaptureObserver() = default;

  // Called when the record differs from the last reported one. After the last change of an ended
  // capture it is no longer among the running ones.
  virtual void OnCaptureChanged(const CaptureRecord&) {}
  // Called once the end of the capture is on the disk, and again if a late agent has changed the
  // record since.
  virtual void OnCaptureEnded(const CaptureRecord&) {}
  // The capture was stopped because of a quota, which `why` names.
  virtual void OnCaptureStoppedByQuota(const CaptureRecord&, const std::string& /*why*/) {}
  // The capture has begun, or was given up before it began.
  virtual void OnCaptureArmed(const ArmingOutcome&) {}
  // This many workers cannot take part in a capture.
  virtual void OnWorkersRefused(CaptureObstacle, uint32_t /*workers*/) {}
};

}  // namespace neurontrace
