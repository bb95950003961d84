// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/source/chunk_sink.h"
#include "agent/source/shape_cache.h"
#include "agent/source/source.h"
#include "agent/source/source_metrics.h"
#include "agent/source/stream_writer.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/worker_info.h"
#include "simulate/fleet_rows.h"
#include "simulate/replay_batches.h"
#include "simulate/replay_host.h"

namespace neurontrace {

// Returns the shapes of `rows` as StreamWriter takes them.
std::vector<CachedShape> MakeReplayShapes(const FleetRows& rows);

// The workers of one simulated instance as a source of its agent. Their events, losses and ends
// come in batches and go into every capture that records the worker then; StreamWriter makes the
// chunks, as it does behind a real tap. Workers stream only: they refuse flight recorders,
// snapshots, previews and captures by execution. They begin and stop when the order arrives, and
// budgets have no effect, as they cost nothing. While the queue has no room, batches wait. On the
// agent's sequence.
class ReplaySource final : public Source {
 public:
  // All references outlive the source. `waiting` counts the events of batches that wait; the caller
  // of Take adds them.
  struct Deps {
    const FleetPlan& plan;
    FleetRows& rows;
    const std::vector<CachedShape>& shapes;
    ReplayHost& host;
    TaskRunner& runner;
    ChunkSink& sink;
    SourceListener& listener;
    std::atomic<uint64_t>& waiting;
  };
  struct Identity {
    std::string agent_id;
    std::string boot_id;
    std::string job;
    std::vector<uint32_t> ranks;  // ascending, of one instance; not empty
  };
  // Since construction, over all captures; they only grow.
  struct Counts {
    uint64_t rows = 0;            // given to streams
    uint64_t losses = 0;          // planned ones of a known number, given to streams
    uint64_t unknown_losses = 0;  // planned ones of an unknown number
  };

  ReplaySource(const Deps& deps, Identity identity);
  ~ReplaySource() override;

  // Reports the workers, and begins periodic work. Called once.
  void Start();
  // Takes what happened. Batches are in the order of time.
  void Take(ReplayBatch batch);

  // Source
  void ApplyOrder(const SourceOrder& order) override;
  void Stop(const CaptureId& capture_id, uint64_t host_raw_ns) override;
  bool IsFinished(const CaptureId& capture_id) const override;
  void Forget(const CaptureId& capture_id) override;
  void Flush() override;

  // Returns whether a worker of this instance records in the capture; with an empty id, in any.
  bool Records(const CaptureId& capture_id) const;
  // Returns whether something of this instance fell silent: its captures never finish.
  bool is_silent() const { return is_silent_; }
  const Counts& counts() const { return counts_; }

 private:
  struct Worker {
    WorkerInfo info;
    std::vector<uint32_t> ranks;
    bool has_ended = false;
  };
  struct Core {
    uint64_t rows = 0;  // so far, whether recorded or not
    bool is_silent = false;
  };
  // A worker's part in a capture.
  struct Part {
    CaptureWorkerStatus status;
    std::vector<std::unique_ptr<StreamWriter>> writers;  // by Worker::ranks; null: not recorded
  };
  struct Capture {
    CaptureSpec spec;
    std::array<bool, kFleetEventTypes> selects = {};
    bool has_begun = false;
    bool is_stopping = false;
    bool has_ended = false;              // its streams have
    std::map<size_t, Part> parts;        // by index of the worker
    std::vector<StreamWriter*> writers;  // by rank, from the first; null: not recorded
  };

  size_t IndexOf(uint32_t rank) const { return rank - first_rank_; }
  Capture& AddCapture(const SourceOrder& order);
  void Begin(const CaptureId& capture_id, Capture& capture, bool is_late);
  // Opens the streams of a worker. Does nothing if the capture selects none of its cores.
  void OpenStreams(const CaptureId& capture_id, Capture& capture, size_t worker, Part& part);
  // Sets and reports the state of a worker's part.
  void Enter(Part& part, CaptureWorkerState state, std::string detail = "",
             CaptureObstacle obstacle = CaptureObstacle::kNone);
  // Brings the counts of a status up to date.
  void UpdateCounts(Part& part) const;
  // Delivers what waits, as far as there is room, then ends the captures that are to stop.
  void Pump();
  bool HasRoom() const;
  void Deliver(const ReplayBatch& batch);
  void Record(const FleetEvent& event);
  void RecordRow(const FleetEvent& event, const FleetRow& row);
  void EndWorker(Worker& worker, size_t index);
  void EndStreams(Capture& capture);
  void Tick();

  const Deps deps_;
  const Identity identity_;
  const uint32_t first_rank_;
  AgentSourceMetrics metrics_;
  std::vector<Worker> workers_;
  std::vector<Core> cores_;  // by rank, from the first
  std::map<CaptureId, Capture> captures_;
  std::deque<ReplayBatch> batches_;  // that wait
  bool is_pump_posted_ = false;
  bool is_silent_ = false;
  uint64_t position_ = 1;  // of the batch that is delivered next
  uint32_t ticks_ = 0;
  Counts counts_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
