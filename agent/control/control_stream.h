// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "lib/trace/agent_info.h"
#include "lib/trace/capture_begin.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/stream_cursor.h"
#include "lib/trace/trigger_rule.h"
#include "lib/trace/worker_info.h"
#include "lib/trace/worker_stacks.h"

namespace neurontrace {

// Reports of an agent: the messages of neurontrace.v1.AgentReport as plain values.
struct WorkerGone {
  WorkerIdentity worker;
};
// How far this agent as a whole has come with a capture.
struct CaptureAgentStatus {
  CaptureId capture_id;
  uint32_t matched_workers = 0;
  bool finished = false;  // stopped, and every chunk has its receipt
};
// Shows that the agent lives, with its clock; every two seconds.
struct Heartbeat {
  uint64_t host_realtime_ns = 0;
};
// AgentInfo is the first report on each call.
using AgentReport = std::variant<AgentInfo, WorkerInfo, WorkerGone, CaptureWorkerStatus,
                                 CaptureAgentStatus, Heartbeat, TriggerFired, WorkerStacks>;

// A capture that is to be armed, started or resumed. The welcome, which is the first message on
// each call, lists all captures that this agent has a part in.
struct CaptureResume {
  CaptureId capture_id;
  CaptureSpec spec;
  bool stopping = false;
  std::vector<StreamCursor> cursors = {};  // of this agent's streams
  bool arm = false;                        // begin nothing before OnBeginCapture
  std::optional<CaptureBegin> begin = {};  // of one that has begun
};
// The aggregator's first message: it accepts the agent, and lists the captures that continue.
struct Welcome {
  std::string aggregator_id;
  std::string aggregator_version;
  std::vector<CaptureResume> captures;  // all that continue
};

// One Control call to the aggregator. Abstract so that tests play the aggregator. All calls and
// events happen on the agent's sequence; destroying the stream ends the call, and no event follows.
class ControlStream {
 public:
  // Orders of the aggregator, checked for form. The listener may destroy the stream in OnClosed
  // only.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnWritten() = 0;  // the next Send may follow
    virtual void OnWelcome(const Welcome& welcome) = 0;
    // Starts a capture, or arms it if `capture.arm`.
    virtual void OnStartCapture(const CaptureResume& capture) = 0;
    // Begins a capture that is armed, at the moment of `begin`.
    virtual void OnBeginCapture(const CaptureId& capture_id, const CaptureBegin& begin) = 0;
    // Stops a capture at a time of the host's CLOCK_MONOTONIC_RAW; 0: at once.
    virtual void OnStopCapture(const CaptureId& capture_id, uint64_t host_raw_ns) = 0;
    // Replaces all earlier rules.
    virtual void OnSetTriggers(const std::vector<TriggerRule>& rules, uint64_t version) = 0;
    virtual void OnCollectStacks(const StacksOrder& order) = 0;
    virtual void OnClosed(const absl::Status& status) = 0;  // the last event
  };

  virtual ~ControlStream() = default;
  // Sends one report. Called once for the start, which sends AgentInfo, then after each OnWritten.
  virtual void Send(const AgentReport& report) = 0;  // one at a time
};

// Starts a call. The listener outlives the stream and receives nothing before this returns.
using ControlConnector = std::function<std::unique_ptr<ControlStream>(ControlStream::Listener&)>;

}  // namespace neurontrace
