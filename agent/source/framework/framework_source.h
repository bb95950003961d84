// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "agent/source/framework/framework_capture.h"
#include "agent/source/source.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {

// The trace files of PyTorch's and JAX's profilers as a source: those named on the command line in
// every capture, and those that come or change in a watched directory while a capture runs. Each
// file is one stream of kind kFramework; the events of a file may be older than the capture. One
// status for all files of the instance, once there is one. Captures that leave framework traces out
// pass it by; the event types and cores a capture selects are the runtime's and say nothing about
// framework events. Lives on the agent's sequence.
class FrameworkSource final : public Source {
 public:
  // All references outlive the source.
  FrameworkSource(FrameworkFiles files, const Clock& clock, TaskRunner& runner, ChunkSink& sink,
                  SourceListener& listener, AgentSourceMetrics& metrics);
  ~FrameworkSource() override;

  void StartCapture(const CaptureId& capture_id, const CaptureSpec& spec,
                    std::span<const StreamCursor> cursors) override;
  // There is nothing to arm: it says so where the capture selects it.
  void ArmCapture(const CaptureId& capture_id, const CaptureSpec& spec,
                  std::span<const StreamCursor> cursors) override;
  void BeginCapture(const CaptureId& capture_id, const CaptureBegin& begin) override;
  void JoinCapture(const CaptureId& capture_id, const CaptureSpec& spec,
                   std::span<const StreamCursor> cursors, const CaptureBegin& begin) override;
  void ResumeStopping(const CaptureId& capture_id, const CaptureSpec& spec,
                      std::span<const StreamCursor> cursors,
                      const std::optional<CaptureBegin>& begin) override;
  void StopCapture(const CaptureId& capture_id) override;
  bool CaptureFinished(const CaptureId& capture_id) const override;
  void Flush() override;
  void ForgetCapture(const CaptureId& capture_id) override;

 private:
  struct Capture {
    std::unique_ptr<FrameworkCapture> files;
    CaptureWorkerStatus told;  // the listener
  };

  struct Armed {
    CaptureSpec spec;
    std::vector<StreamCursor> cursors;
  };

  bool Selects(const CaptureSpec& spec) const;
  void TellPlainly(const CaptureId& capture_id, CaptureWorkerState state, const char* detail);
  void Begin(const CaptureId& capture_id, const CaptureSpec& spec,
             std::span<const StreamCursor> cursors, bool is_over);
  void Work();  // a piece of every capture's work, then again if there is more
  void ScheduleWork();
  void Look();  // at the directory, and at what came of the work
  void SchedulePoll();
  void Tell(Capture& capture);
  void After(uint64_t delay_ns, void (FrameworkSource::*task)());

  const FrameworkFiles files_;
  const Clock& clock_;
  TaskRunner& runner_;
  ChunkSink& sink_;
  SourceListener& listener_;
  AgentSourceMetrics& metrics_;
  ShapeCache shapes_;
  std::map<CaptureId, Capture> captures_;
  std::map<CaptureId, Armed> armed_;  // that have not begun
  bool work_scheduled_ = false;
  bool look_scheduled_ = false;
  uint64_t looked_ns_ = 0;     // monotonic
  uint64_t look_took_ns_ = 0;  // the last one
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
