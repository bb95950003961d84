// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "lib/trace/capture_begin.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/stream_cursor.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Hears what sources find out. Everything happens on the agent's sequence.
class SourceListener {
 public:
  virtual ~SourceListener() = default;
  virtual void OnWorker(const WorkerInfo& worker) = 0;  // new or changed
  virtual void OnWorkerGone(const WorkerIdentity& worker) = 0;
  virtual void OnCaptureWorker(const CaptureWorkerStatus& status) = 0;  // new or changed
};

// Anything an agent reads trace data from: the taps of this node, its framework trace files. Lives
// on the agent's sequence; says what it finds to a SourceListener and hands chunks to a ChunkSink,
// both given at construction.
class Source {
 public:
  virtual ~Source() = default;

  // Begins to record what `spec` selects; again with the same id: no effect but to take note of the
  // cursors. `cursors` is what the store already holds of this agent's streams in this capture:
  // those streams continue there.
  virtual void StartCapture(const CaptureId& capture_id, const CaptureSpec& spec,
                            std::span<const StreamCursor> cursors) = 0;

  // Says of everything that `spec` selects whether it could take part (kArmed, or kRefused with the
  // obstacle), and anew when that changes. Nothing begins before BeginCapture or StartCapture.
  // Again with the same id, or once it has begun: no effect but to take note of the cursors.
  virtual void ArmCapture(const CaptureId& capture_id, const CaptureSpec& spec,
                          std::span<const StreamCursor> cursors) = 0;

  // What was told to arm begins at that moment (or, for a snapshot, is cut there). What could not
  // be armed begins when it can. Again: only the executions may be others; unknown: no effect.
  virtual void BeginCapture(const CaptureId& capture_id, const CaptureBegin& begin) = 0;

  // Takes part in a capture that has begun at `begin` elsewhere, and perhaps here: as StartCapture,
  // but what begins now is late.
  virtual void JoinCapture(const CaptureId& capture_id, const CaptureSpec& spec,
                           std::span<const StreamCursor> cursors, const CaptureBegin& begin) = 0;

  // A capture that the agent before this one ran, and of which the aggregator cannot be asked yet:
  // goes on with what records it now, and begins nothing. StartCapture, ResumeStopping or
  // ForgetCapture follows once the aggregator is reached. A source that loses nothing by waiting
  // for those need not do anything.
  virtual void GoOn(const CaptureId&, const CaptureSpec&, std::span<const StreamCursor>) {}

  // A capture of an earlier run of this agent that has been told to stop since, perhaps days ago:
  // what was begun then is finished, and nothing new should begin. `begin`, if it had begun, says
  // which executions were to be recorded. StopCapture follows.
  virtual void ResumeStopping(const CaptureId& capture_id, const CaptureSpec& spec,
                              std::span<const StreamCursor> cursors,
                              const std::optional<CaptureBegin>& /*begin*/) {
    StartCapture(capture_id, spec, cursors);
  }

  // The aggregator has told of every capture that this agent has a part in: what still records
  // another one, for an agent before this one, records it for nobody.
  virtual void OnCaptureListComplete() {}

  // Stops recording, reads what is left and ends every stream of the capture. Again: no effect.
  virtual void StopCapture(const CaptureId& capture_id) = 0;

  // As StopCapture, at the moment that the host's CLOCK_MONOTONIC_RAW shows `host_raw_ns`, or as
  // near to it as the source can.
  virtual void StopCaptureAt(const CaptureId& capture_id, uint64_t /*host_raw_ns*/) {
    StopCapture(capture_id);
  }

  // True once StopCapture was called (or nothing was selected, or it is a snapshot and was cut) and
  // every chunk is stored by the aggregator or lost.
  virtual bool CaptureFinished(const CaptureId& capture_id) const = 0;

  // The agent is ending: hands over what was read and not yet, so that nothing of it has to be read
  // again.
  virtual void Flush() = 0;

  // The capture is over at the aggregator: forget it, whatever is left.
  virtual void ForgetCapture(const CaptureId& capture_id) = 0;
};

}  // namespace neurontrace
