// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "agent/source/neuron/decode/nrt_event_decoder.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Observes what workers do, independently of what captures record of them; implemented by triggers.
// On the agent's sequence.
class WorkerWatch {
 public:
  virtual ~WorkerWatch() = default;

  // Called before a document of this worker, fetched at `fetched_ns` (realtime), is decoded.
  // Returns false if its events are not of interest; OnEvent is not called for them then.
  virtual bool BeginDocument(const WorkerIdentity& worker, const std::string& job,
                             uint64_t fetched_ns) = 0;
  // One of its events; everything it points to is valid during the call only.
  virtual void OnEvent(const NrtEvent& event) = 0;
  // Its runtime started or stopped a trace, so silence says nothing about its cores.
  virtual void OnTraceEdge(const WorkerIdentity& worker) = 0;
  // Called a few times a second for each worker. `drained`: the tap fetches, and everything that it
  // fetched has been read.
  virtual void OnPolled(const WorkerIdentity& worker, bool drained) = 0;
  // The process is gone without having closed its runtime or exited in an orderly way.
  virtual void OnWorkerDied(const WorkerIdentity& worker, const std::string& job) = 0;
  // The last call about this worker.
  virtual void OnWorkerRemoved(const WorkerIdentity& worker) = 0;
};

// Passes events to a watch and then to their actual sink. Both outlive it.
class WatchedEvents final : public NrtEventSink {
 public:
  WatchedEvents(WorkerWatch& watch, NrtEventSink& sink) : watch_(watch), sink_(sink) {}
  void OnEvent(const NrtEvent& event) override {
    watch_.OnEvent(event);
    sink_.OnEvent(event);
  }
  void OnUnfitEvent(uint32_t nc_idx, const EventFields& fields, uint32_t present,
                    std::string_view why) override {
    sink_.OnUnfitEvent(nc_idx, fields, present, why);
  }

 private:
  // Sees every event, whether the capture records it or not.
  WorkerWatch& watch_;
  NrtEventSink& sink_;
};

}  // namespace neurontrace
