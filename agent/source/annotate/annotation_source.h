// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/source/annotate/annotation_reader.h"
#include "agent/source/annotate/annotation_stream.h"
#include "agent/source/annotate/range_pairing.h"
#include "agent/source/capture_participants.h"
#include "agent/source/host_instant.h"
#include "agent/source/neuron/tap/annotation_peers.h"
#include "agent/source/neuron/tap/peer_identity.h"
#include "agent/source/source.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"

namespace neurontrace {

// The annotations of this node's processes as a source: what they give to NVTX, by
// libneurontrace_annotate.so (docs/user/annotations.md). A process is recorded in the captures in
// which its worker takes part; the two are one by the kernel's pid and start time of their
// connections. Each such process has a stream of kind kAnnotation from its first annotation on. It
// has the annotations from the capture's planned moment to the planned end, by their own stamps.
//
// Captures without framework traces, flight recorders, snapshots and previews have none. It reports
// nothing to a listener: nobody waits for annotations, and their stream contains what happened to
// it. While no capture runs, nothing is polled and nothing is recorded. Lives on the agent's
// sequence.
class AnnotationSource final : public Source, public AnnotationPeers {
 public:
  struct Options {
    std::string agent_id;
    std::string instance_id;
    std::string boot_id;  // empty: the kernel's
    std::string proc_root = "/proc";
    std::function<HostInstant()> read_host_instant = ReadHostInstant;  // tests replace it
  };

  // All references outlive the source. `participants` is asked from a task, never from within a
  // call of this class's functions.
  AnnotationSource(Options options, const Clock& clock, TaskRunner& runner, ChunkSink& sink,
                   AgentSourceMetrics& metrics, const CaptureParticipants& participants);
  ~AnnotationSource() override;

  void ApplyOrder(const SourceOrder& order) override;
  void Stop(const CaptureId& capture_id, uint64_t host_raw_ns) override;
  bool IsFinished(const CaptureId& capture_id) const override;
  void Forget(const CaptureId& capture_id) override;
  void Flush() override;

  // AnnotationPeers
  absl::Status OnAnnotator(TapSession& session, TapGreeting greeting) override;
  void OnAnnotatorGone(TapSession& session) override;

 private:
  // One process with the library. Kept for a while after its connection has ended: another agent's
  // end or its own brings the connection back.
  struct Process {
    TapSession* session = nullptr;             // null: not connected
    uint64_t gone_ns = 0;                      // monotonic, when the connection ended
    std::unique_ptr<AnnotationReader> reader;  // null once it is broken
    RangePairing pairing;
    bool is_claimed = false;         // by the process itself, as the kernel does not show it
    std::optional<bool> last_order;  // on this connection: to record, or not
    bool is_behind = false;          // the last reading did not reach the end of its rings
  };
  // One capture that this source has a part in.
  struct Capture {
    // By the capture's specification; false if only old streams have to be ended.
    bool selected = false;
    std::optional<PlannedMoment> begin;  // nothing before it is recorded
    std::optional<PlannedMoment> stop;
    bool ended = false;                // its streams were ended
    std::set<WorkerIdentity> workers;  // that take part
    // Of agents before this one: what the store has, until the stream is continued.
    std::map<WorkerIdentity, StreamCursor> cursors;
    std::map<WorkerIdentity, std::unique_ptr<AnnotationStream>> streams;
    std::map<WorkerIdentity, uint64_t> ranges_before;  // highest number at the begin

    bool Includes(uint64_t realtime_ns) const {
      return begin && realtime_ns >= begin->realtime_ns &&
             (!stop || realtime_ns < stop->realtime_ns);
    }
  };

  bool Selects(const CaptureSpec& spec) const;
  // Returns the capture of the order, which is created or gets the order's cursors; null if the
  // source has no part in it.
  Capture* AddCapture(const SourceOrder& order);
  // Returns whether the capture wants annotations of the worker now.
  static bool Wants(const Capture& capture, const WorkerIdentity& worker) {
    return capture.selected && !capture.ended && capture.workers.contains(worker);
  }
  StreamIdentity IdentityOf(const WorkerIdentity& worker) const;
  // Returns the worker's stream in the capture, begun if there is none.
  AnnotationStream& StreamOf(const CaptureId& capture_id, Capture& capture,
                             const WorkerIdentity& worker);
  // Calls `act` with the stream of the worker in each capture that includes `realtime_ns`.
  void ForStreams(const WorkerIdentity& worker, uint64_t realtime_ns,
                  const std::function<void(AnnotationStream&)>& act);

  // Reads all processes, ends what is to end, and schedules itself while there are captures.
  void Poll();
  void SchedulePoll();
  // Asks which workers take part in each capture, and switches the recording of their processes.
  void RefreshWorkers();
  void SwitchRecording(const WorkerIdentity& worker, Process& process);
  // Returns false while a capture that wants the worker has no room.
  bool HasRoom(const WorkerIdentity& worker) const;
  void Read(const WorkerIdentity& worker, Process& process);
  // Gives the annotations, which are ordered by time, to the captures that include them.
  void Distribute(const WorkerIdentity& worker, Process& process,
                  const std::vector<ReadAnnotation>& reads);
  // Records that nothing more can be read of the process.
  void Break(const WorkerIdentity& worker, Process& process, const absl::Status& why);
  // Ends the streams of processes that have ended, and forgets those.
  void RemoveEnded();
  bool HasReturnTime(const WorkerIdentity& worker, const Process& process) const;
  // Ends all streams of the capture, with those of earlier runs of the agent.
  void EndCapture(const CaptureId& capture_id, Capture& capture);

  const Options options_;
  const ProcFiles proc_;
  const std::string boot_id_;
  const Clock& clock_;
  TaskRunner& runner_;
  ChunkSink& sink_;
  AgentSourceMetrics& metrics_;
  const CaptureParticipants& participants_;
  std::map<WorkerIdentity, Process> processes_;
  std::map<CaptureId, Capture> captures_;
  uint64_t refreshed_ns_ = 0;  // monotonic, when participants were asked last
  uint32_t first_ring_ = 0;    // with which the next reading begins
  bool poll_scheduled_ = false;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
