// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "agent/source/source_order.h"
#include "lib/trace/ids.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Receives what sources find out, on the agent's sequence.
class SourceListener {
 public:
  virtual ~SourceListener() = default;
  virtual void OnWorker(const WorkerInfo& worker) = 0;  // new or changed
  virtual void OnWorkerGone(const WorkerIdentity& worker) = 0;
  virtual void OnCaptureWorker(const CaptureWorkerStatus& status) = 0;  // new or changed
};

// Anything an agent reads trace data from: the taps of this node, its framework trace files.
// Reports what it finds to a SourceListener and hands chunks to a ChunkSink, both given at
// construction. Lives on the agent's sequence.
class Source {
 public:
  // Stops at once.
  static constexpr uint64_t kStopNow = 0;

  virtual ~Source() = default;

  // Carries out what the aggregator, or the agent before this one, wants of a capture.
  virtual void ApplyOrder(const SourceOrder& order) = 0;

  // Stops recording at the moment that the host's CLOCK_MONOTONIC_RAW shows `host_raw_ns`, or as
  // near to it as the source can; reads what is left and ends every stream of the capture. No
  // effect when repeated.
  virtual void Stop(const CaptureId& capture_id, uint64_t host_raw_ns) = 0;

  // Returns true once Stop was called (or nothing was selected, or it is a snapshot and was cut)
  // and every chunk is stored by the aggregator or lost.
  virtual bool IsFinished(const CaptureId& capture_id) const = 0;

  // Forgets the capture, whatever is left of it: it is over at the aggregator.
  virtual void Forget(const CaptureId& capture_id) = 0;

  // The aggregator has listed every capture that this agent has a part in. What still records
  // another one, for an agent before this one, is not wanted.
  virtual void OnCaptureListComplete() {}

  // Hands over what was read and is still kept, so that it need not be read again: the agent ends.
  virtual void Flush() = 0;
};

}  // namespace neurontrace
