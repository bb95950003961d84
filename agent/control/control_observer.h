// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/control/control_stream.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/trigger_rule.h"
#include "lib/trace/worker_stacks.h"

namespace neurontrace {

// What other components of the agent have to know of its ControlSession, and what the session asks
// them. Called on the agent's sequence, from inside the session. The defaults do nothing and object
// to nothing.
class ControlObserver {
 public:
  virtual ~ControlObserver() = default;

  // Called when an aggregator accepted this agent and all of its captures are dealt with;
  // `captures` are those that continue. Chunks may be uploaded from now on.
  virtual void OnWelcome(const std::set<CaptureId>& /*captures*/) {}
  // Called when the connection to an aggregator that had accepted this agent is gone.
  virtual void OnConnectionLost() {}
  // Checks the aggregator's id. Any status but OK means that this is not the aggregator that the
  // agent works for: the call is ended and tried again later, and nothing of the welcome is carried
  // out.
  virtual absl::Status CheckAggregator(const std::string& /*aggregator_id*/) {
    return absl::OkStatus();
  }
  // Returns true if the agent resumed this capture offline at places that the aggregator's cursors
  // contradict. The capture is then forgotten and begun again.
  virtual bool WasWronglyResumed(const CaptureResume&) { return false; }
  // Called before the sources get the order: the capture runs on this node from now on. Not called
  // for captures that cannot continue without the aggregator.
  virtual void OnCaptureRunning(const CaptureId&, const CaptureSpec&) {}
  // Called when the result of CaptureParticipants::Records has changed for some capture.
  virtual void OnRecordingChanged() {}
  // Called when a capture is to end and the sources have been informed.
  virtual void OnCaptureStopping() {}
  // Called when the capture is over: everything of it is delivered, or the aggregator no longer
  // wants it.
  virtual void OnCaptureOver(const CaptureId&) {}
  // Called before the sources learn the cursors of a capture that a welcome lists: adds what this
  // node's own spool holds.
  virtual void AddSpoolCursors(CaptureResume&) {}
  // Returns true once no chunk of the capture is on its way. Asked after the sources have finished
  // it.
  virtual bool IsDelivered(const CaptureId&) const { return true; }
  // Called with the aggregator's trigger rules, which replace all earlier ones.
  virtual void OnTriggers(const std::vector<TriggerRule>& /*rules*/, uint64_t /*version*/) {}
  // Called when the aggregator asks for the stacks of workers. Each gets an answer by ReportStacks.
  virtual void OnCollectStacks(const StacksOrder& /*order*/) {}
};

}  // namespace neurontrace
