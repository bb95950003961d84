// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "agent/source/capture_participants.h"
#include "agent/source/framework/framework_capture.h"
#include "agent/source/source.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {

// The trace files of PyTorch's and JAX's profilers as a source: those named on the command line in
// every capture, and those that come or change in a watched directory while a capture runs. Each
// content of a file is one stream of kind kFramework; its events may be older than the capture. All
// files of the instance have one status, which is reported once there is a file.
// Captures that name frameworks also have their recorders ask the workers of the capture for
// traces; the outcomes are in that status.
//
// Captures whose filter excludes framework traces are ignored. The event types and cores that a
// capture selects are the runtime's and do not apply to framework events. Lives on the agent's
// sequence; work is done in steps of a few milliseconds, so that large files do not hold up other
// sources.
class FrameworkSource final : public Source {
 public:
  // All references outlive the source.
  FrameworkSource(FrameworkFiles files, const Clock& clock, TaskRunner& runner, ChunkSink& sink,
                  SourceListener& listener, AgentSourceMetrics& metrics,
                  const CaptureParticipants& participants);
  ~FrameworkSource() override;

  // Adds what can record on demand. To be called before the first order; it outlives the source.
  void AddRecorder(FrameworkRecorder& recorder) { recorders_.push_back(&recorder); }

  // Reports an armed capture as armed, as files need no preparation. kContinue does nothing, since
  // files can be read later.
  void ApplyOrder(const SourceOrder& order) override;
  void Stop(const CaptureId& capture_id, uint64_t host_raw_ns) override;
  bool IsFinished(const CaptureId& capture_id) const override;
  void Forget(const CaptureId& capture_id) override;
  void Flush() override;

 private:
  // `told` is the last status that the listener received, which is compared with the current one.
  struct Capture {
    std::unique_ptr<FrameworkCapture> files;
    CaptureWorkerStatus told;  // the listener
  };

  // Returns true if the capture includes framework traces of this instance.
  bool Selects(const CaptureSpec& spec) const;
  // Reports a status of the instance without any file.
  void ReportState(const CaptureId& capture_id, CaptureWorkerState state, const char* detail);
  // The parts of ApplyOrder. An armed capture has no files yet: those that come before it begins do
  // not belong to it.
  void Arm(const SourceOrder& order);
  void BeginArmed(const CaptureId& capture_id, const CaptureBegin& begin);
  // `is_over`: the capture was ordered to stop while the agent was away.
  void Begin(const SourceOrder& order, bool is_over);
  void Work();  // a piece of every capture's work, then again if there is more
  void ScheduleWork();
  void Poll();  // at the directory, and at the result of the work
  void SchedulePoll();
  // Reports the status if it has changed.
  void Report(Capture& capture);
  // Returns what the order asks of frameworks, begun at its moment; null: nothing.
  std::unique_ptr<OnDemandCapture> MakeOnDemand(const SourceOrder& order) const;
  // Posts a task that does nothing if this was destroyed by then.
  void After(uint64_t delay_ns, void (FrameworkSource::*task)());

  const FrameworkFiles files_;
  const Clock& clock_;
  TaskRunner& runner_;
  ChunkSink& sink_;
  SourceListener& listener_;
  AgentSourceMetrics& metrics_;
  const CaptureParticipants& participants_;
  std::vector<FrameworkRecorder*> recorders_;
  ShapeCache shapes_;
  std::map<CaptureId, Capture> captures_;
  std::map<CaptureId, SourceOrder> armed_;  // captures that have not begun
  bool work_scheduled_ = false;
  bool poll_scheduled_ = false;
  uint64_t polled_ns_ = 0;         // monotonic
  uint64_t poll_duration_ns_ = 0;  // the last one
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
