// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "agent/source/neuron/decode/nrt_event_decoder.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Sees what workers do, beside what captures record of them: triggers. On the agent's sequence.
class WorkerWatch {
 public:
  virtual ~WorkerWatch() = default;

  // A document of this worker is about to be decoded, as it was fetched at that time (realtime).
  // False: nobody looks at its events, and it is decoded as if nobody was here.
  virtual bool BeginDocument(const WorkerIdentity& worker, const std::string& job,
                             uint64_t fetched_ns) = 0;
  // One of its events; what it points to holds during the call.
  virtual void OnEvent(const NrtEvent& event) = 0;
  // Its runtime began or stopped to trace: that nothing comes says nothing of its cores.
  virtual void OnTraceEdge(const WorkerIdentity& worker) = 0;
  // A few times a second for each worker; `drained`: all that its tap has fetched is read, and the
  // tap fetches.
  virtual void OnPolled(const WorkerIdentity& worker, bool drained) = 0;
  // The process is gone, and had neither closed its runtime nor come to its end in good order.
  virtual void OnDied(const WorkerIdentity& worker, const std::string& job) = 0;
  // Nothing more is said of it.
  virtual void OnGone(const WorkerIdentity& worker) = 0;
};

// What hands events to a watch and then to whom they are for.
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
  WorkerWatch& watch_;
  NrtEventSink& sink_;
};

}  // namespace neurontrace
