// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lib/trace/capture_obstacle.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// The result of asking all agents of a capture who can take part.
struct ArmingOutcome {
  bool begun = false;
  uint64_t arm_ns = 0;   // from the command to the decision
  uint64_t lead_ns = 0;  // from the decision to the beginning
};

// Is told what happens to captures, after Coordinator::AddObserver. Called on the coordinator's
// sequence, in the order in which observers were added; must not call back into the coordinator.
class CaptureObserver {
 public:
  virtual ~CaptureObserver() = default;

  // The record differs from the one that was last reported. After the last change of a capture that
  // has ended, it is no longer among the running ones.
  virtual void OnCaptureChanged(const CaptureRecord&) {}
  // The end of the capture has been written to disk. Called again when a late agent has changed the
  // record since.
  virtual void OnCaptureEnded(const CaptureRecord&) {}
  // The capture was told to stop because of a quota; `why` names it.
  virtual void OnCaptureStoppedByQuota(const CaptureRecord&, const std::string& /*why*/) {}
  // The capture has begun, or was given up before it began.
  virtual void OnCaptureArmed(const ArmingOutcome&) {}
  // So many workers cannot take part in a capture.
  virtual void OnWorkersRefused(CaptureObstacle, uint32_t /*workers*/) {}
};

}  // namespace neurontrace
