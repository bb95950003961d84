// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/source/chunk_sink.h"
#include "agent/source/host_instant.h"
#include "agent/source/neuron/counting_sink.h"
#include "agent/source/neuron/tap/annotation_peers.h"
#include "agent/source/neuron/tap/tap_server.h"
#include "agent/source/neuron/tap/tap_session.h"
#include "agent/source/neuron/tap/tapped_workers.h"
#include "agent/source/neuron/tap_worker.h"
#include "agent/source/source.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {

// A worker whose buffer has something to be read.
struct WaitingReader {
  // The worker's place in workers_.
  size_t index = 0;
  // The time in ns until its buffer is full.
  uint64_t ns_to_full = 0;
  // The turn in which it was last read.
  uint64_t last_turn = 0;
};

// Returns the order of reading in turn number `turn`. Buffers that will be full soonest come first,
// since the first reader gets the room that the queue has. Every second turn begins with the reader
// that has waited longest, so that none starves. Equal readers keep their order. Pure.
inline std::vector<WaitingReader> ReadingOrder(std::vector<WaitingReader> waiting, uint64_t turn) {
  std::stable_sort(
      waiting.begin(), waiting.end(),
      [](const WaitingReader& a, const WaitingReader& b) { return a.ns_to_full < b.ns_to_full; });
  if (turn % 2 == 0) {
    const auto longest = std::min_element(
        waiting.begin(), waiting.end(),
        [](const WaitingReader& a, const WaitingReader& b) { return a.last_turn < b.last_turn; });
    if (longest != waiting.end()) std::rotate(waiting.begin(), longest, longest + 1);
  }
  return waiting;
}

// The taps of this node as a source: accepts their connections, keeps the inventory of workers, has
// them record what captures select, and turns what they write into chunks. Everything that a tap
// sends or writes is checked before use; a tap that violates the protocol is disconnected and
// counted, and never affects others: connections, workers and reading are shared out between users.
// Lives on the agent's sequence. Start must be called before any other function.
//
// Delivers exactly once across restarts of the agent and the aggregator: a record of a tap's ring
// is released only when every row and loss of it is durable. An agent that restarts reads from
// there, and skips what the cursors of its orders show as stored
// (docs/decisions/0006-exactly-once-from-the-ring.md).
class TapSource final : public Source,
                        public TappedWorkers,
                        private TapServer::Listener,
                        private TapSession::Listener {
 public:
  // How long a worker may take to find this agent: taps without an agent try again at least every
  // five seconds.
  static constexpr uint64_t kReturnPatienceNs = 12'000'000'000;
  // Workers get places (NumberNodeCores) only after the workers of the previous agent had time to
  // reconnect, and after a pause without new workers of their job, so that the order of arrival
  // does not matter; at the latest kPlaceWaitMaxNs after their own arrival.
  static constexpr uint64_t kPlacePatienceNs = 6'000'000'000;
  static constexpr uint64_t kPlacePauseNs = 1'000'000'000;
  static constexpr uint64_t kPlaceWaitMaxNs = 5'000'000'000;

  struct Options {
    TapServer::Options server;
    // The id of this agent, which is part of each stream's identity.
    std::string agent_id;
    // The instance and the boot that workers are identified by; an empty boot id means the
    // kernel's.
    std::string instance_id;
    std::string boot_id;
    std::string proc_root = "/proc";
    // Whether whole command lines are reported, and not only their first word.
    bool with_arguments = false;
    // The clocks of this host and the users behind sockets; tests replace them.
    std::function<HostInstant()> read_host_instant = ReadHostInstant;
    std::function<uint64_t()> read_thread_cpu_ns = ReadThreadCpuNs;
    std::function<std::optional<uid_t>(int socket)> read_peer_user = TapSession::ReadPeerUser;
    // Threads of the PeerCloser; 0: descriptors are closed at once.
    size_t closer_threads = limits::kPeerCloserThreadsMax;
  };
  // All references outlive the source. `ranks` is called on the sequence.
  TapSource(Options options, TaskRunner& runner, const Clock& clock, ChunkSink& sink,
            SourceListener& listener, RankResolver ranks, AgentSourceMetrics& metrics);
  ~TapSource() override;

  // Sets the observer of workers' events. To be called before Start; it outlives the source.
  void SetWatch(WorkerWatch& watch) { shared_.watch = &watch; }

  // Sets who takes the connections of annotation libraries, which are refused otherwise. To be
  // called before Start; it outlives the source.
  void SetAnnotations(AnnotationPeers& peers) { annotations_ = &peers; }

  // Begins to listen. Fails with the error of TapServer::Listen, which names the socket.
  absl::Status Start();
  // How long what fills can be left alone, in ns; no entry where that is not known.
  struct Headroom {
    std::map<uint32_t, uint64_t> rings;  // the least of each nc_idx, over all workers
    std::optional<uint64_t> buffer;      // the least of all taps' buffers
  };
  Headroom headroom() const;

  // TappedWorkers
  bool HasWorker(uint32_t pid, uint64_t start_time_ticks) const override;

  // Returns the workers whose process the kernel has identified, without those that are only known
  // by their own claim.
  std::vector<WorkerIdentity> SeenWorkers() const;
  // Sets the pod of such a worker as the kubelet reports it; nothing withdraws an earlier report.
  void SetPod(uint32_t pid, uint64_t start_time_ticks, const std::optional<WorkerPod>& pod);

  // Returns what each worker costs, by pid.
  std::map<uint32_t, TapWorker::Load> loads() const;

  // Takes a connection, as if a tap had connected. Public for tests.
  void AddConnection(UniqueFd socket);

  // Source. What prevents a worker from recording is reported as its state.
  void ApplyOrder(const SourceOrder& order) override;
  void Stop(const CaptureId& capture_id, uint64_t host_raw_ns) override;
  bool IsFinished(const CaptureId& capture_id) const override;
  void Forget(const CaptureId& capture_id) override;
  void OnCaptureListComplete() override;
  void Flush() override;

 private:
  // One connection; `worker` is null until its greeting was accepted.
  struct Connection {
    std::unique_ptr<TapSession> session;
    TapWorker* worker = nullptr;
    // True once AnnotationPeers has accepted its greeting.
    bool annotates = false;
    // Watched for wake-ups of the tap; closed if the tap misuses it.
    PeerFd wake;
    // The user who connected, by the kernel; nothing: not known.
    std::optional<uid_t> user;
  };
  // One capture that this source has a part in.
  struct Capture {
    CapturePlan plan;
    // What the store has of this agent's streams. A stream that was ended here is marked as ended.
    std::vector<StreamCursor> cursors;
    // Continued from the agent before this one: nothing is begun until the aggregator confirms it.
    bool unconfirmed = false;
    // Nothing is begun before an order to begin.
    bool arming = false;
    // When it begins or has begun; nothing before that is known.
    std::optional<PlannedMoment> moment;
    ExecutionBounds executions;
    bool stopping = false;
    // True while it is stopping and workers with streams in the store may still come back.
    bool awaits_workers = false;
    // Streams of workers that have gone, to be ended.
    std::vector<std::unique_ptr<StreamWriter>> orphans;
  };

  // TapServer::Listener. Waits while too many descriptors of taps are still to be closed.
  bool CanAccept() override;
  void OnAccepted(UniqueFd socket) override { AddConnection(std::move(socket)); }
  // TapSession::Listener
  absl::Status OnGreeting(TapSession& session, TapGreeting greeting) override;
  void OnReport(TapSession& session, const TapReport& report) override;
  void OnClosed(TapSession& session, const absl::Status& why) override;

  absl::Status OnAnnotatorGreeting(TapSession& session, TapGreeting greeting);
  // Returns the worker that owns the greeting's buffer, new or known from an earlier connection.
  // Fails if the buffer is not readable or in use, or if a limit of the user is reached.
  absl::StatusOr<TapWorker*> FindOrAddWorker(TapSession& session, const TapGreeting& greeting);
  // Returns the capture of the order, which is created or gets the order's cursors.
  Capture& AddCapture(const SourceOrder& order);
  void Start(const SourceOrder& order);
  void Arm(const SourceOrder& order);
  void Begin(const CaptureId& capture_id, const CaptureBegin& begin);
  void Join(const SourceOrder& order);
  void Continue(const SourceOrder& order);
  void Finish(const SourceOrder& order);
  // Sets when the capture begins, unless that is known. `joins`: it has begun elsewhere.
  void SetMoment(Capture& capture, const CaptureBegin& begin, bool joins);
  // Has the worker take part if the capture selects it or has streams of it. `late`: the worker or
  // this agent learned of it after others had begun.
  void JoinIfMatching(TapWorker& worker, Capture& capture, bool late);
  // Has every worker take part that has to; see JoinIfMatching.
  void JoinAll(Capture& capture, bool late);
  // Does the same for workers whose description has changed since the last call.
  void JoinChangedWorkers();
  // Has every worker send its tap the commands that are due.
  void NotifyTaps();
  // Reports how far captures by execution have come, and repeats that while there are any.
  void ReportExecutions();
  // Ends what the worker's tap records if no capture of the aggregator's list wants it.
  void DropUnauthenticated(TapWorker& worker);
  // Returns whether the agent is so young that a worker of its earlier run may not have found it
  // yet.
  bool CanReturn(const WorkerIdentity& worker) const;
  // Ends streams of workers that will not return.
  void EndOrphans(Capture& capture);
  // Destroys the session; its worker continues without a connection.
  void CloseConnection(TapSession& session);
  // Return how many connections or workers the user has.
  size_t ConnectionsOf(std::optional<uid_t> user) const;
  size_t WorkersOf(std::optional<uid_t> user) const;
  // Empties the wake socket, and has the buffers read.
  void OnWake(TapSession* session);

  // Posts a turn unless one is posted; that one is not brought forward.
  void ScheduleTurn(uint64_t delay_ns);
  // Reads a share of every buffer that has something, then schedules itself while data comes.
  void Turn();
  // Returns the workers with something to be read, in ReadingOrder.
  std::vector<TapWorker*> WorkersToRead();
  // Every 200 ms: everything that depends on time rather than on a message.
  void Tick();
  // Closes connections that have sent no greeting for too long.
  void DropSilentConnections();
  // Resolves the ranks of all workers together if anything that they depend on has changed.
  void ResolveRanks();
  std::vector<bool> FindPlaceable() const;
  // Drops departed workers that ran beside none of the present ones, and the oldest beyond a limit.
  void ForgetDeparted();
  // Destroys the workers that are gone and delivered.
  void RemoveDoneWorkers();
  // Calls the member on the sequence after the delay, unless the source is destroyed by then.
  void After(uint64_t delay_ns, void (TapSource::*member)());

  const Options options_;
  const ProcFiles proc_;
  TaskRunner& runner_;
  const Clock& clock_;
  AgentSourceMetrics& metrics_;
  const RankResolver ranks_;
  // Takes the chunks of previews.
  CountingSink counting_sink_;
  AnnotationPeers* annotations_ = nullptr;
  PeerCloser closer_;
  TapWorker::Shared shared_;
  std::string boot_id_;
  const uint64_t started_ns_;
  // True once the aggregator has listed the captures that this agent has a part in.
  bool is_capture_list_complete_ = false;

  std::unique_ptr<TapServer> server_;
  std::map<TapSession*, Connection> connections_;
  std::vector<std::unique_ptr<TapWorker>> workers_;  // in order of arrival
  // Workers that were removed, while they ran beside one that is here: what they contradicted stays
  // contradicted.
  std::vector<RankFacts> departed_;
  std::map<CaptureId, Capture> captures_;
  // The number of the last turn; each makes one reading order.
  uint64_t turn_ = 0;
  bool turn_scheduled_ = false;
  bool membership_changed_ = false;
  bool executions_scheduled_ = false;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
