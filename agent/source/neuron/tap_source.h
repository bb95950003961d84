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
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "agent/source/chunk_sink.h"
#include "agent/source/host_instant.h"
#include "agent/source/neuron/tap/tap_server.h"
#include "agent/source/neuron/tap/tap_session.h"
#include "agent/source/neuron/tap_worker.h"
#include "agent/source/source.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {

// Where the chunks of a preview go: nowhere. Their streams count what they submit; here it is only
// said to be stored, so that what it came from is let go of. On the agent's sequence.
class CountingSink final : public ChunkSink {
 public:
  // `runner` outlives the sink.
  explicit CountingSink(TaskRunner& runner) : runner_(runner) {}

  using ChunkSink::HasRoom;
  bool HasRoom(const CaptureId&) const override { return true; }
  void Submit(Chunk, Done done) override {
    runner_.PostTask([done = std::move(done)] { done({Fate::kStored, "", false}); });
  }

 private:
  TaskRunner& runner_;
};

// Somebody with something to be read.
struct WaitingReader {
  size_t index = 0;         // whose
  uint64_t ns_to_full = 0;  // until what it is read from is full
  uint64_t last_turn = 0;   // in which it was read
};

// Who is read first in turn number `turn`: those whose buffers are full the soonest, since who is
// read first gets what room there is further on; but every second turn begins with the one that has
// waited longest, so that none starves. A pure function; equals keep their order.
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

// The taps of this node as a source: takes their connections, keeps the inventory of workers, has
// them record what captures want, and turns what they hand over into chunks. Everything a tap sends
// or writes is checked; one that misbehaves is disconnected and counted. Lives on the agent's
// sequence; Start before anything else.
//
// Exactly once, over restarts of the agent and of the aggregator: a record of a tap's ring is
// released only when every row and loss it gave is durable; an agent that starts anew reads from
// there, and passes over what the cursors of its orders say is stored
// (docs/decisions/0006-exactly-once-from-the-ring.md).
class TapSource final : public Source, private TapSession::Listener {
 public:
  // Taps that lost their agent look for the next one every five seconds at the longest.
  static constexpr uint64_t kReturnPatienceNs = 12'000'000'000;
  // Workers get places only when those of the agent before this one had the time to come back, and
  // when no other worker of their job has come for a while, so that the order in which they came
  // does not matter; at the latest after the last of these.
  static constexpr uint64_t kPlacePatienceNs = 6'000'000'000;
  static constexpr uint64_t kPlacePauseNs = 1'000'000'000;
  static constexpr uint64_t kPlaceWaitMaxNs = 5'000'000'000;

  struct Options {
    TapServer::Options server;
    std::string agent_id;
    std::string instance_id;
    std::string boot_id;  // empty: the kernel's
    std::string proc_root = "/proc";
    bool with_arguments = false;  // whether whole command lines are reported
    // The clocks of this host and its users; for tests, which have others.
    std::function<HostInstant()> read_host_instant = ReadHostInstant;
    std::function<uint64_t()> read_thread_cpu_ns = ReadThreadCpuNs;
    std::function<std::optional<uid_t>(int socket)> read_peer_user = TapSession::ReadPeerUser;
    size_t closer_threads = limits::kPeerCloserThreadsMax;
  };
  // All but the options outlive the source.
  TapSource(Options options, TaskRunner& runner, const Clock& clock, ChunkSink& sink,
            SourceListener& listener, RankResolver ranks, AgentSourceMetrics& metrics);
  ~TapSource() override;

  // Who looks on, before Start; outlives the source.
  void SetWatch(WorkerWatch& watch) { shared_.watch = &watch; }

  // Begins to listen; an error names what is wrong with the socket.
  absl::Status Start();
  // How long what fills can be left alone, in ns; nothing where it is not known.
  struct Headroom {
    std::map<uint32_t, uint64_t> rings;  // the least of each nc_idx, over all workers
    std::optional<uint64_t> buffer;      // the least of all taps' buffers
  };
  Headroom headroom() const;

  // Whether the process is a worker here.
  bool HasWorker(uint32_t pid, uint64_t start_time_ticks) const;

  // Workers whose process the kernel names; not those that are known by their own word.
  std::vector<WorkerIdentity> SeenWorkers() const;
  // The pod of such a worker by the kubelet's word; nothing: that does not hold any more.
  void SetPod(uint32_t pid, uint64_t start_time_ticks, const std::optional<WorkerPod>& pod);

  // What each worker costs, by pid.
  std::map<uint32_t, TapWorker::Load> loads() const;

  // For tests: as if a tap had connected.
  void AddConnection(UniqueFd socket);

  // Source
  void ApplyOrder(const SourceOrder& order) override;
  void Stop(const CaptureId& capture_id, uint64_t host_raw_ns) override;
  bool IsFinished(const CaptureId& capture_id) const override;
  void Forget(const CaptureId& capture_id) override;
  void OnCaptureListComplete() override;
  void Flush() override;

 private:
  struct Connection {
    std::unique_ptr<TapSession> session;
    TapWorker* worker = nullptr;
    PeerFd wake;
    std::optional<uid_t> user;
  };
  struct Capture {
    CapturePlan plan;
    std::vector<StreamCursor> cursors;
    bool unconfirmed = false;             // of the agent before this one: nothing is begun
    bool arming = false;                  // nothing is begun before an order to begin
    std::optional<PlannedMoment> moment;  // once it is to begin
    ExecutionBounds executions;
    bool stopping = false;
    bool awaits_workers = false;  // stopping, and workers with streams may yet come back
    // Streams of workers that are not there any more, to be ended.
    std::vector<std::unique_ptr<StreamWriter>> orphans;
  };

  // TapSession::Listener
  absl::Status OnGreeting(TapSession& session, TapGreeting greeting) override;
  void OnReport(TapSession& session, const TapReport& report) override;
  void OnClosed(TapSession& session, const absl::Status& why) override;

  absl::StatusOr<TapWorker*> FindOrAddWorker(TapSession& session, const TapGreeting& greeting);
  // The capture of the order, which is new or gets the order's cursors.
  Capture& AddCapture(const SourceOrder& order);
  void Start(const SourceOrder& order);
  void Arm(const SourceOrder& order);
  void Begin(const CaptureId& capture_id, const CaptureBegin& begin);
  void Join(const SourceOrder& order);
  void Continue(const SourceOrder& order);
  void Finish(const SourceOrder& order);
  // When it begins, unless that is known. `joins`: it has begun elsewhere.
  void SetMoment(Capture& capture, const CaptureBegin& begin, bool joins);
  // `late`: the worker or this agent came to it after others had begun.
  void JoinIfMatching(TapWorker& worker, Capture& capture, bool late);
  void JoinAll(Capture& capture, bool late);
  void JoinWhatChanged();
  void TellTaps();
  void ReportExecutions();
  // Ends what the worker's tap records if nobody wants it any more.
  void ForgetStranger(TapWorker& worker);
  // The agent is so young that a worker of the agent before it may not have found it yet.
  bool MayReturn(const WorkerIdentity& worker) const;
  void EndOrphans(Capture& capture);
  void CloseConnection(TapSession& session);
  size_t ConnectionsOf(std::optional<uid_t> user) const;
  size_t WorkersOf(std::optional<uid_t> user) const;
  void OnWake(TapSession* session);

  void ScheduleTurn(uint64_t delay_ns);
  void Turn();
  std::vector<TapWorker*> WorkersToRead();
  void Tick();
  void DropSilentConnections();
  void ResolveRanks();
  std::vector<bool> FindPlaceable() const;
  void ForgetDeparted();
  void RemoveDoneWorkers();
  void After(uint64_t delay_ns, void (TapSource::*member)());

  const Options options_;
  const ProcFiles proc_;
  TaskRunner& runner_;
  const Clock& clock_;
  AgentSourceMetrics& metrics_;
  const RankResolver ranks_;
  CountingSink counting_sink_;
  PeerCloser closer_;
  TapWorker::Shared shared_;
  std::string boot_id_;
  const uint64_t started_ns_;
  bool all_told_ = false;  // by the aggregator, which captures this agent has a part in

  std::unique_ptr<TapServer> server_;
  std::map<TapSession*, Connection> connections_;
  std::vector<std::unique_ptr<TapWorker>> workers_;  // in order of arrival
  // Workers that were removed, while they ran beside one that is here: what they contradicted stays
  // contradicted.
  std::vector<RankFacts> departed_;
  std::map<CaptureId, Capture> captures_;
  uint64_t turn_ = 0;
  bool turn_scheduled_ = false;
  bool membership_changed_ = false;
  bool executions_scheduled_ = false;
  std::map<const TapWorker*, uint64_t> info_seen_;  // versions
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
