// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/trace/framework_trace.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// What the framework of each worker is to record for one capture: CPU operators and annotations,
// with stacks only if asked for. A plain value.
struct FrameworkOrder {
  CaptureId capture_id;
  // The workers that the capture selected when it began.
  std::vector<WorkerIdentity> workers;
  // By time: from this moment of CLOCK_REALTIME for `duration_ns`.
  uint64_t begin_realtime_ns = 0;
  // False if the order came without a moment and begins at once: the aggregator did not know this
  // host's clock when it planned, or the capture began while the agent was away.
  bool is_planned = true;
  uint64_t duration_ns = 0;
  // By optimizer steps, if `steps` is not 0: from `first_step` on. With 0 as the first step, from
  // the next step that the framework can begin at. The times above are not used then.
  uint64_t first_step = 0;
  uint32_t steps = 0;
  // Call stacks of the operators, which slow the worker down considerably.
  bool with_stacks = false;
};

// One framework's way of recording on demand: Kineto's daemon protocol for PyTorch, calls of XLA's
// ProfilerService for jax and torch_xla. Asks the
// workers of this node for traces and knows the outcome of each; the files that they write are read
// by FrameworkSource, which owns the captures and calls every function. On the agent's sequence; no
// function blocks. Nothing here fails towards the caller: the traces say what went wrong.
class FrameworkRecorder {
 public:
  virtual ~FrameworkRecorder() = default;

  // Returns one of kOnDemandFrameworks.
  virtual std::string_view framework() const = 0;

  // Gives the order to its workers as soon as each can receive it. Ignored for a capture that is
  // known already.
  virtual void Begin(const FrameworkOrder& order) = 0;
  // A file of the framework directory belongs to the capture; `name` is its path below there.
  virtual void OnFile(const CaptureId& capture_id, std::string_view name) = 0;
  // The capture has ended: nobody else is asked. Traces that have ended by then are waited for; a
  // trace that would end later cannot be stopped early, and its file is not waited for.
  virtual void Stop(const CaptureId& capture_id) = 0;
  // Applies the deadlines that have passed; to be called several times a second.
  virtual void Poll() = 0;

  // Returns the trace of each worker of the order, in its order; empty for an unknown capture.
  virtual std::vector<FrameworkTrace> Traces(const CaptureId& capture_id) const = 0;
  // Returns whether the name of a file shows that a worker wrote it for the capture. Pure.
  virtual bool IsFileOf(const CaptureId& capture_id, std::string_view name) const = 0;
  // Discards the capture and its traces. A worker that has been asked records nevertheless.
  virtual void Forget(const CaptureId& capture_id) = 0;
};

}  // namespace neurontrace
