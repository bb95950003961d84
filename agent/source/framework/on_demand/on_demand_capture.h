// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/source/capture_participants.h"
#include "agent/source/framework/on_demand/framework_recorder.h"
#include "agent/source/host_instant.h"
#include "agent/source/neuron/tap/peer_identity.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/remark.h"

namespace neurontrace {

// What one capture asks of the frameworks of this node: passes its order to the recorder of each,
// and collects the outcomes. A framework without a recorder has failed on every worker that is
// asked for it, with the reason. A capture of several frameworks asks each worker for those that
// it has loaded; a worker that has none of them, or that the agent cannot look into, is asked for
// all. Owned by FrameworkSource. On the agent's sequence.
class OnDemandCapture {
 public:
  // `recorders` are those that there are; `proc` is looked into to find what workers have loaded.
  // All references outlive the capture.
  OnDemandCapture(const CaptureId& capture_id, const CaptureSpec& spec,
                  std::vector<FrameworkRecorder*> recorders,
                  const CaptureParticipants& participants, ProcFiles proc = ProcFiles());
  ~OnDemandCapture();
  OnDemandCapture(const OnDemandCapture&) = delete;
  OnDemandCapture& operator=(const OnDemandCapture&) = delete;

  // The capture begins at that moment, or began then.
  void Begin(const PlannedMoment& moment);
  // A file of the framework directory belongs to the capture.
  void OnFile(std::string_view name);
  void Stop();
  // Applies deadlines, and takes note of workers that joined since the beginning: they are not
  // asked. To be called several times a second.
  void Poll();

  // Returns true while a trace may still bring a file.
  bool IsAwaited() const;
  // Returns whether the file is that of a trace of this capture.
  bool IsFileOf(std::string_view name) const;
  // Returns the outcomes, at most limits::kFrameworkTracesMax.
  std::vector<FrameworkTrace> Traces() const;
  // Adds a remark that counts the traces that will never come.
  void AddRemarks(std::vector<Remark>& remarks) const;

 private:
  // Returns the outcomes by worker, without a limit: AddRemarks counts all of them.
  std::vector<FrameworkTrace> AllTraces() const;
  // Returns the frameworks that the worker is asked for.
  std::vector<std::string> FrameworksOf(const WorkerIdentity& worker) const;
  // Returns the workers of the capture that are processes.
  std::vector<WorkerIdentity> Workers() const;

  const CaptureId capture_id_;
  const CaptureSpec spec_;
  std::vector<FrameworkRecorder*> recorders_;  // of the frameworks that are asked for
  std::vector<std::string> without_recorder_;  // frameworks
  const CaptureParticipants& participants_;
  const ProcFiles proc_;
  std::vector<WorkerIdentity> known_;   // sorted: those that have an outcome
  std::vector<FrameworkTrace> absent_;  // of workers and frameworks without a recorder
  bool begun_ = false;
  bool stopped_ = false;
};

}  // namespace neurontrace
