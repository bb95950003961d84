// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "agent/source/neuron/capture/worker_capture.h"
#include "agent/source/shape_cache.h"
#include "agent/source/source.h"
#include "agent/source/source_metrics.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/stream_cursor.h"
#include "tests/sim/sim_worker.h"

namespace neurontrace {

// The agent's source over simulated workers: what TapSource and TapWorker do, with the same
// WorkerCapture, CaptureStreams and StreamWriter below, but without sockets, shared memory and
// JSON.
class SimSource final : public Source {
 public:
  struct Options {
    std::string agent_id;
    std::string instance_id;
    std::string boot_id;
  };
  using Workers = std::vector<std::unique_ptr<SimWorker>>;

  // All outlive it.
  SimSource(SimWorld& world, Options options, Workers& workers, TaskRunner& runner, ChunkSink& sink,
            SourceListener& listener);
  ~SimSource() override;

  void ApplyOrder(const SourceOrder& order) override;
  void Stop(const CaptureId& capture_id, uint64_t host_raw_ns) override;
  bool IsFinished(const CaptureId& capture_id) const override;
  void Forget(const CaptureId& capture_id) override;
  void Flush() override;

 private:
  struct Capture {
    CapturePlan plan;
    std::vector<StreamCursor> cursors;
    bool arming = false;
    bool unconfirmed = false;
    bool stopping = false;
    std::vector<std::unique_ptr<StreamWriter>> orphans;
  };
  // One worker as this agent knows it.
  struct Known {
    SimWorker* worker = nullptr;
    uint64_t position = 0;
    std::map<CaptureId, std::unique_ptr<WorkerCapture>> captures;
    std::map<CaptureId, uint64_t> start_at_ns;  // not asked before
    std::set<CaptureId> start_answered;
    std::set<CaptureId> stop_sent;
    std::set<CaptureId> forgotten;
    bool reported = false;
    bool gone = false;
  };

  void Tick();
  void Attach();
  void Read(Known& known);
  bool MustWaitFor(const Known& known, const CaptureId& capture) const;
  void Take(Known& known, const SimWorker::Record& record);
  void AddRows(WorkerCapture& capture, const SimWorker::Record& record);
  void Command(Known& known, const CaptureId& id, WorkerCapture& capture);
  void Commit(Known& known);
  void JoinIfMatching(Known& known, Capture& capture);
  void Begin(const CaptureId& capture_id);
  void EndOrphans(Capture& capture);
  bool IsDone(const Known& known) const;

  SimWorld& world_;
  const Options options_;
  Workers& workers_;
  const Clock& clock_;
  TaskRunner& runner_;
  SourceListener& listener_;
  AgentSourceMetrics metrics_;
  const StreamSetup capture_context_;
  ShapeCache shapes_;
  std::vector<std::unique_ptr<Known>> known_;
  std::map<CaptureId, Capture> captures_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
