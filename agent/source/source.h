// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "agent/source/source_order.h"
#include "lib/trace/ids.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Receives what sources find out. Called on the agent's sequence; implemented by ControlSession.
class SourceListener {
 public:
  virtual ~SourceListener() = default;
  // The listener copies what it keeps.
  virtual void OnWorker(const WorkerInfo& worker) = 0;  // new or changed
  virtual void OnWorkerGone(const WorkerIdentity& worker) = 0;
  virtual void OnCaptureWorker(const CaptureWorkerStatus& status) = 0;  // new or changed
};

// Anything that an agent reads trace data from: taps, framework trace files, the host, artifacts.
// It reports to a SourceListener and hands chunks to a ChunkSink, both given at construction. Lives
// on the agent's sequence, and no function may block.
//
// A capture passes through ApplyOrder, Stop, IsFinished and Forget. A source that has no part in a
// capture ignores its orders and is finished at once.
class Source {
 public:
  // Value of `host_raw_ns` that stops at once.
  static constexpr uint64_t kStopNow = 0;

  virtual ~Source() = default;

  // Carries out an order of the aggregator, or of the agent's previous run. Problems are reported
  // in the status of the workers concerned.
  virtual void ApplyOrder(const SourceOrder& order) = 0;

  // Stops recording when the host's CLOCK_MONOTONIC_RAW shows `host_raw_ns`, or as near to it as
  // the source can; reads what is left, and ends every stream of the capture. Repeating it has no
  // effect.
  virtual void Stop(const CaptureId& capture_id, uint64_t host_raw_ns) = 0;

  // Returns true once Stop was called (or nothing was selected, or it is a snapshot and was cut)
  // and every chunk is stored by the aggregator or lost. Polled by ControlSession.
  virtual bool IsFinished(const CaptureId& capture_id) const = 0;

  // Discards the capture and everything that is left of it: it is over at the aggregator.
  virtual void Forget(const CaptureId& capture_id) = 0;

  // The aggregator has listed every capture that this agent has a part in. Whatever still records
  // another one, begun by an earlier run of the agent, is to be stopped.
  virtual void OnCaptureListComplete() {}

  // Closes open chunks and hands them over, so that their data need not be read again: the agent
  // ends.
  virtual void Flush() = 0;
};

}  // namespace neurontrace
