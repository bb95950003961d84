// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/source/framework/on_demand/framework_recorder.h"
#include "agent/source/framework/xla/xla_calls.h"
#include "agent/source/framework/xla/xla_ports.h"
#include "agent/source/neuron/tap/peer_identity.h"
#include "agent/source/source_metrics.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"

namespace neurontrace {

// Has jax and torch_xla record on demand: calls the ProfilerService of each worker that runs one,
// ahead of the planned moment, which XLA waits for by itself. The answer is the trace. XlaCalls
// saves it in the framework directory, where it is read as any other file; its folder names the
// worker by its pid on this machine, whatever the file says. On the agent's sequence.
//
// Outcomes: an order is "asked" until its call ends, then "recording" until the file has been seen.
// XLA refuses at once while another session runs: "busy". All answers that are under way together
// have limits::kXlaAnswersBytesMax; a worker whose share would be too small is not asked. Times are
// CLOCK_REALTIME for the moments of captures and monotonic for deadlines.
class XlaRecorder final : public FrameworkRecorder, public XlaAnswers {
 public:
  // An order that is given later than this before the moment would begin late.
  static constexpr uint64_t kPrepareNs = 200'000'000;

  // `calls` saves into the framework directory. The references outlive the recorder.
  XlaRecorder(const std::string& proc_root, std::unique_ptr<XlaCalls> calls, const Clock& clock,
              AgentSourceMetrics& metrics);

  // Returns a recorder that calls by gRPC and saves into `directory`; null if that is not absolute:
  // a worker's server may write there itself, from another working directory. The references
  // outlive the recorder.
  static std::unique_ptr<XlaRecorder> Create(const std::string& directory, TaskRunner& runner,
                                             const Clock& clock, AgentSourceMetrics& metrics);

  // FrameworkRecorder
  std::string_view framework() const override { return kXlaFramework; }
  void Begin(const FrameworkOrder& order) override;
  void OnFile(const CaptureId& capture_id, std::string_view name) override;
  void Stop(const CaptureId& capture_id) override;
  void Poll() override;
  std::vector<FrameworkTrace> Traces(const CaptureId& capture_id) const override;
  bool IsFileOf(const CaptureId& capture_id, std::string_view name) const override;
  void Forget(const CaptureId& capture_id) override;

  // XlaAnswers
  void OnAnswer(const std::string& session, const XlaAnswer& answer) override;

 private:
  // One worker of a capture.
  struct Target {
    WorkerIdentity worker;
    std::string session;
    std::string address;
    FrameworkTraceState state = FrameworkTraceState::kWaiting;
    std::string detail;
    size_t answer_bytes_max = 0;
    bool is_open = false;           // it has been asked and has not answered
    uint64_t file_deadline_ns = 0;  // monotonic, once it has answered
  };
  struct Capture {
    FrameworkOrder order;
    std::vector<Target> targets;
    bool is_stopped = false;
    uint64_t deadline_ns = 0;  // monotonic, for answers; 0: not stopped
  };

  // Returns why none of the workers can be asked; empty: they can.
  static std::string DescribeUnfit(const FrameworkOrder& order);
  // Asks one worker, or sets why not. An answer may have `share` bytes.
  void Ask(const FrameworkOrder& order, size_t share, Target& target);
  // Returns what all answers that are under way may have left of their limit.
  size_t FreeBytes() const;
  // Sets the outcome of a call that failed.
  void ApplyFailure(const Capture& capture, const absl::Status& status, Target& target) const;
  // Sets a final state, unless the target has one.
  static void Settle(FrameworkTraceState state, std::string detail, Target& target);

  const ProcFiles proc_;
  const XlaPorts ports_;
  const Clock& clock_;
  AgentSourceMetrics& metrics_;
  std::map<CaptureId, Capture> captures_;
  const std::unique_ptr<XlaCalls> calls_;
};

}  // namespace neurontrace
