// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap_source.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/status.h"

namespace neurontrace {
namespace {

constexpr uint64_t kFirstTickNs = 200'000'000;
constexpr int kWakesPerTurn = 16;

// Whether a user who has `own` of so many, of which `used` are in use, may have one more.
bool HasShare(size_t own, size_t used, size_t max) { return used < max && own < max - used; }

std::string WordsOf(std::optional<uid_t> user) {
  return user ? fmt::format("user {}", *user) : "a user that the kernel does not name";
}

}  // namespace

TapSource::TapSource(Options options, TaskRunner& runner, const Clock& clock, ChunkSink& sink,
                     SourceListener& listener, RankResolver ranks, AgentSourceMetrics& metrics)
    : options_(std::move(options)),
      proc_(options_.proc_root),
      runner_(runner),
      clock_(clock),
      metrics_(metrics),
      ranks_(std::move(ranks)),
      counting_sink_(runner),
      closer_(options_.closer_threads),
      shared_{{options_.agent_id, clock, sink, metrics},
              {options_.agent_id, clock, counting_sink_, metrics},
              listener,
              proc_,
              {},
              {},
              options_.read_thread_cpu_ns,
              options_.with_arguments},
      boot_id_(options_.boot_id.empty() ? proc_.BootId() : options_.boot_id),
      started_ns_(clock.MonotonicNs()) {
  After(kFirstTickNs, &TapSource::Tick);
}

TapSource::~TapSource() {
  for (auto& [session, connection] : connections_) {
    if (connection.wake.valid()) runner_.RemoveReadableWatch(connection.wake.get());
  }
}

absl::Status TapSource::Start() {
  const auto may_accept = [this] {
    const bool full = closer_.full();
    if (full) AgentSourceMetrics::Add(metrics_.tap_accepts_put_off);
    return !full;
  };
  ASSIGN_OR_RETURN(
      server_, TapServer::Listen(options_.server, runner_, may_accept,
                                 [this](UniqueFd socket) { AddConnection(std::move(socket)); }));
  spdlog::info("waiting for taps at {}", options_.server.path);
  return absl::OkStatus();
}

void TapSource::AddConnection(UniqueFd accepted) {
  PeerFd socket(std::move(accepted), closer_);
  const std::optional<uid_t> user = options_.read_peer_user(socket.get());
  const size_t own = ConnectionsOf(user);
  if (!HasShare(own, connections_.size(), limits::kTapConnectionsMax)) {
    AgentSourceMetrics::Add(metrics_.taps_refused);
    spdlog::warn("a tap of {} was refused: it has {} of {} connections here, and {} are in use",
                 WordsOf(user), own, limits::kTapConnectionsMax, connections_.size());
    return;  // closed; the tap tries again
  }
  auto session = std::make_unique<TapSession>(std::move(socket), closer_, runner_, clock_,
                                              static_cast<TapSession::Listener&>(*this));
  TapSession* const key = session.get();
  connections_[key] = {.session = std::move(session), .user = user};
}

size_t TapSource::ConnectionsOf(std::optional<uid_t> user) const {
  return static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(),
                                           [&](const auto& c) { return c.second.user == user; }));
}

size_t TapSource::WorkersOf(std::optional<uid_t> user) const {
  return static_cast<size_t>(std::count_if(workers_.begin(), workers_.end(),
                                           [&](const auto& w) { return w->user() == user; }));
}

absl::StatusOr<TapWorker*> TapSource::FindOrAddWorker(TapSession& session,
                                                      const TapGreeting& greeting) {
  ASSIGN_OR_RETURN(std::unique_ptr<TapBufferReader> reader,
                   TapBufferReader::Open(greeting.buffer.get()));
  for (const auto& worker : workers_) {
    if (!worker->reader().IsSameFile(*reader)) continue;
    if (!worker->can_attach()) return FailedPrecondition("the tap's buffer is in use or refused");
    return worker.get();
  }
  const std::optional<uid_t> user = connections_.at(&session).user;
  if (!HasShare(WorkersOf(user), workers_.size(), limits::kWorkersPerAgentMax)) {
    return ResourceExhausted("{} has {} workers here already, of {} in all", WordsOf(user),
                             WorkersOf(user), workers_.size());
  }
  const PeerIdentity peer =
      IdentifyPeer(proc_, static_cast<uint32_t>(session.peer().pid), greeting.claimed_pid,
                   greeting.process_start_ticks, reader->inode());
  WorkerIdentity identity{.instance_id = options_.instance_id,
                          .boot_id = boot_id_,
                          .pid = peer.pid,
                          .start_time_ticks = peer.start_time_ticks,
                          .container_id = peer.container_id};
  for (const auto& worker : workers_) {
    if (worker->identity() != identity) continue;
    // One process has one tap. One that is not connected went with the program that exec replaced.
    if (worker->connected()) return FailedPrecondition("process {} has a tap already", peer.pid);
    worker->DeclareGone();
  }
  workers_.push_back(std::make_unique<TapWorker>(
      shared_, std::move(identity),
      TapWorker::Peer{peer.claimed, user,
                      peer.claimed ? std::vector<uint32_t>() : proc_.Ancestors(peer.pid)},
      std::move(reader)));
  return workers_.back().get();
}

absl::Status TapSource::OnGreeting(TapSession& session, TapGreeting greeting) {
  const absl::StatusOr<TapWorker*> worker = FindOrAddWorker(session, greeting);
  if (!worker.ok()) return worker.status();
  Connection& connection = connections_.at(&session);
  connection.worker = *worker;
  connection.wake = std::move(greeting.wake);
  runner_.AddReadableWatch(connection.wake.get(), [this, key = &session] { OnWake(key); });
  AgentSourceMetrics::Add(metrics_.taps_connected);
  metrics_.workers.store(workers_.size(), std::memory_order_relaxed);
  membership_changed_ = true;
  (*worker)->Attach(session, greeting);
  ResolveRanks();
  for (auto& [id, capture] : captures_) JoinIfMatching(**worker, capture, true);
  ForgetStranger(**worker);
  spdlog::info("worker {} connected, tap {}", ToString((*worker)->identity()),
               greeting.tap_version);
  ScheduleTurn(0);
  return absl::OkStatus();
}

void TapSource::OnReport(TapSession& session, const TapReport& report) {
  if (TapWorker* const worker = connections_.at(&session).worker) worker->OnReport(report);
  ScheduleTurn(0);
}

void TapSource::OnClosed(TapSession& session, const absl::Status& why) {
  if (!why.ok()) {
    const bool greeted = connections_.at(&session).worker != nullptr;
    AgentSourceMetrics::Add(greeted ? metrics_.taps_misbehaved : metrics_.taps_refused);
    spdlog::warn("a tap (pid {}) was disconnected: {}", session.peer().pid,
                 std::string(why.message()));
  }
  CloseConnection(session);
  ScheduleTurn(0);
}

void TapSource::CloseConnection(TapSession& session) {
  const auto found = connections_.find(&session);
  if (found->second.wake.valid()) runner_.RemoveReadableWatch(found->second.wake.get());
  if (found->second.worker != nullptr) found->second.worker->Detach();
  connections_.erase(found);
}

void TapSource::OnWake(TapSession* session) {
  Connection& connection = connections_.at(session);
  char data[64];
  PeerMessage message;
  for (int i = 0; i < kWakesPerTurn; ++i) {
    message = ReceivePeerMessage(connection.wake.get(), data, closer_);
    if (message.size <= 0 || !message.descriptors.empty()) break;
  }
  const bool quiet = message.size < 0 && (errno == EAGAIN || errno == EINTR);
  if (!quiet && (message.size <= 0 || !message.descriptors.empty())) {
    // Closed while the connection lives, never connected, which is readable for ever, or used for
    // what it is not for: the timer reads on.
    runner_.RemoveReadableWatch(connection.wake.get());
    connection.wake.Close();
  }
  ScheduleTurn(0);
}

TapSource::Capture& TapSource::AddCapture(const CaptureId& capture_id, const CaptureSpec& spec,
                                          std::span<const StreamCursor> cursors) {
  auto [entry, is_new] = captures_.try_emplace(capture_id);
  Capture& capture = entry->second;
  if (is_new) {
    capture.plan = {capture_id, spec, {}};
    absl::StatusOr<EventFilter> filter = EventFilter::Parse(spec.event_types);
    // The aggregator has checked it; a newer one may allow what this agent does not know.
    if (filter.ok()) capture.plan.filter = *std::move(filter);
    if (!filter.ok())
      spdlog::warn("capture {}: {}", capture_id.ToString(), filter.status().ToString());
  }
  capture.cursors.assign(cursors.begin(), cursors.end());
  return capture;
}

bool TapSource::HasWorker(uint32_t pid, uint64_t start_time_ticks) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& worker) {
    return worker->identity().pid == pid && worker->identity().start_time_ticks == start_time_ticks;
  });
}

std::vector<WorkerIdentity> TapSource::SeenWorkers() const {
  std::vector<WorkerIdentity> seen;
  for (const auto& worker : workers_) {
    if (!IsClaimed(worker->identity())) seen.push_back(worker->identity());
  }
  return seen;
}

void TapSource::SetPod(uint32_t pid, uint64_t start_time_ticks,
                       const std::optional<WorkerPod>& pod) {
  for (const auto& worker : workers_) {
    const WorkerIdentity& identity = worker->identity();
    if (identity.pid != pid || identity.start_time_ticks != start_time_ticks) continue;
    if (IsClaimed(identity)) continue;
    worker->SetPod(pod);
    membership_changed_ = true;
  }
}

void TapSource::OnAllTold() {
  all_told_ = true;
  for (const auto& worker : workers_) ForgetStranger(*worker);
  ScheduleTurn(0);
}

void TapSource::ForgetStranger(TapWorker& worker) {
  const CaptureId recorded = worker.tap_capture();
  if (all_told_ && !recorded.empty() && !captures_.contains(recorded)) worker.Forget(recorded);
}

bool TapSource::MayReturn(const WorkerIdentity& worker) const {
  if (clock_.MonotonicNs() - started_ns_ >= kReturnPatienceNs) return false;
  if (worker.boot_id != boot_id_) return false;
  // A claimed pid says nothing about whether its process lives: patience alone decides.
  return IsClaimed(worker) || proc_.StartTimeTicks(worker.pid) == worker.start_time_ticks;
}

// Streams that the store holds of workers that did not outlive the agent before this one: nothing
// more can come of them, and how much went with them nobody can say. A worker that lives is given
// the time that its tap takes to find this agent.
void TapSource::EndOrphans(Capture& capture) {
  capture.awaits_workers = false;
  std::map<WorkerIdentity, CaptureWorkerStatus> lost;
  for (StreamCursor& cursor : capture.cursors) {
    const StreamIdentity& stream = cursor.stream;
    if (stream.kind != StreamKind::kNeuronCore || cursor.ended) continue;
    const bool is_here = std::any_of(workers_.begin(), workers_.end(), [&](const auto& worker) {
      return worker->identity() == stream.worker;
    });
    if (is_here) continue;
    if (MayReturn(stream.worker)) {
      capture.awaits_workers = true;
      continue;
    }
    const StreamCursor resumed = cursor;
    cursor.ended = true;  // here; the store hears of it
    CaptureWorkerStatus& status = lost[stream.worker];
    status.capture_id = capture.plan.id;
    status.worker = stream.worker;
    status.state = CaptureWorkerState::kLost;
    if (cursor.next_sequence == 0) {
      if (status.streams == 0) {
        status.detail = "worker and agent ended before anything of it was stored";
      }
      continue;
    }
    auto writer = std::make_unique<StreamWriter>(capture.plan.id, stream, clock_,
                                                 shared_.streams.sink, metrics_);
    writer->Resume(resumed);
    writer->AddLoss(cursor.source_position,
                    {.place = LossPlace::kTapBuffer,
                     .reason = LossReason::kUnknown,
                     .events_unknown = true,
                     .detail = "worker and agent ended, and what lay between them with them"});
    writer->End(cursor.source_position);
    status.detail = "worker and agent ended; what was handed over before is kept";
    status.events_read += writer->counts().read;
    status.events_stored += writer->counts().stored;
    status.events_lost += writer->counts().lost;
    status.events_lost_unknown = status.events_lost_unknown || writer->counts().lost_unknown;
    ++status.streams;
    capture.orphans.push_back(std::move(writer));
  }
  for (const auto& [worker, status] : lost) shared_.listener.OnCaptureWorker(status);
}

void TapSource::ForgetCapture(const CaptureId& capture_id) {
  captures_.erase(capture_id);
  for (const auto& worker : workers_) worker->Forget(capture_id);
  ScheduleTurn(0);
}

}  // namespace neurontrace
