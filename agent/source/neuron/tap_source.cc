// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap_source.h"

#include <spdlog/spdlog.h>

#include <cerrno>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

constexpr uint64_t kFirstTickNs = 200'000'000;
// Wake-ups that are read at once; a tap that floods its socket gets no more of a turn.
constexpr int kWakesPerTurn = 16;

// Returns whether a user with `own` of the `used` entries may have one more of `max`. A user alone
// can take half, each further one half of the rest, so that one user cannot lock out the others.
bool HasShare(size_t own, size_t used, size_t max) { return used < max && own < max - used; }

// Names the user in messages.
std::string DescribeUser(std::optional<uid_t> user) {
  return user ? fmt::format("user {}", *user) : "an unknown user";
}

// The interval of reports of how far cores are, in captures by execution.
constexpr uint64_t kExecutionsNs = 100'000'000;
// How long after a moment the agent checks on its workers; their taps begin by themselves before.
constexpr uint64_t kTapsFirstNs = 10'000'000;

// A worker's share of one turn, so that turns stay short; they follow each other while there is
// more.
constexpr size_t kBytesPerWorker = 2u << 20;
// Pause between turns while data comes, so that each has something to do. Taps are not asked to
// wake the agent meanwhile, which saves a system call for each write.
constexpr uint64_t kBusyPauseNs = 10'000'000;
constexpr uint64_t kTickNs = 200'000'000;
// A connection without a greeting is closed after this time, as it takes a place from others.
constexpr uint64_t kGreetingPatienceNs = 10'000'000'000;
// Workers that ended and whose contradictions are remembered.
constexpr size_t kDepartedMax = 256;

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

// Sessions remove their own watches; the wake sockets are this class's.
TapSource::~TapSource() {
  for (auto& [session, connection] : connections_) {
    if (connection.wake.valid()) runner_.RemoveReadableWatch(connection.wake.get());
  }
}

absl::Status TapSource::Start() {
  ASSIGN_OR_RETURN(server_, TapServer::Listen(options_.server, runner_, *this));
  spdlog::info("waiting for taps at {}", options_.server.path);
  return absl::OkStatus();
}

bool TapSource::CanAccept() {
  const bool full = closer_.full();
  if (full) AgentSourceMetrics::Add(metrics_.tap_accepts_put_off);
  return !full;
}

void TapSource::AddConnection(UniqueFd accepted) {
  PeerFd socket(std::move(accepted), closer_);
  const std::optional<uid_t> user = options_.read_peer_user(socket.get());
  const size_t own = ConnectionsOf(user);
  // Before a session is made, so that a user who floods the socket costs no more than an accept.
  if (!HasShare(own, connections_.size(), limits::kTapConnectionsMax)) {
    AgentSourceMetrics::Add(metrics_.taps_refused);
    spdlog::warn("refused a tap of {}, which has {} of {} connections; {} connections are in use",
                 DescribeUser(user), own, limits::kTapConnectionsMax, connections_.size());
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

// A worker is known by its memory file, which the kernel identifies, and not by what the tap
// claims.
absl::StatusOr<TapWorker*> TapSource::FindOrAddWorker(TapSession& session,
                                                      const TapGreeting& greeting) {
  ASSIGN_OR_RETURN(std::unique_ptr<TapBufferReader> reader,
                   TapBufferReader::Open(greeting.buffer.get()));
  for (const auto& worker : workers_) {
    // The same memory file: a tap that reconnects brings its buffer, and with it its worker.
    if (!worker->reader().IsSameFile(*reader)) continue;
    if (!worker->can_attach()) return FailedPrecondition("the tap's buffer is in use or refused");
    return worker.get();
  }
  const std::optional<uid_t> user = connections_.at(&session).user;
  if (!HasShare(WorkersOf(user), workers_.size(), limits::kWorkersPerAgentMax)) {
    return ResourceExhausted("too many workers: {} has {} of the {} on this agent",
                             DescribeUser(user), WorkersOf(user), workers_.size());
  }
  // A new file: a process that is not known, or a known one with a new tap.
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
    // One process has one tap. A tap that is not connected belonged to the program that exec
    // replaced.
    if (worker->connected()) return FailedPrecondition("process {} already has a tap", peer.pid);
    worker->MarkGone();
  }
  workers_.push_back(std::make_unique<TapWorker>(
      shared_, std::move(identity),
      TapWorker::Peer{peer.claimed, user,
                      peer.claimed ? std::vector<uint32_t>() : proc_.Ancestors(peer.pid)},
      std::move(reader)));
  return workers_.back().get();
}

absl::Status TapSource::OnGreeting(TapSession& session, TapGreeting greeting) {
  if (greeting.annotates) return OnAnnotatorGreeting(session, std::move(greeting));
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
  // Before captures are joined, as selections may depend on ranks.
  ResolveRanks();
  for (auto& [id, capture] : captures_) JoinIfMatching(**worker, capture, true);
  DropUnauthenticated(**worker);
  spdlog::info("worker {} connected, tap {}", ToString((*worker)->identity()),
               greeting.tap_version);
  ScheduleTurn(0);
  return absl::OkStatus();
}

absl::Status TapSource::OnAnnotatorGreeting(TapSession& session, TapGreeting greeting) {
  if (annotations_ == nullptr) return FailedPrecondition("annotations are not recorded here");
  RETURN_IF_ERROR(annotations_->OnAnnotator(session, std::move(greeting)));
  connections_.at(&session).annotates = true;
  return absl::OkStatus();
}

void TapSource::OnReport(TapSession& session, const TapReport& report) {
  if (TapWorker* const worker = connections_.at(&session).worker) worker->OnReport(report);
  ScheduleTurn(0);
}

void TapSource::OnClosed(TapSession& session, const absl::Status& why) {
  if (!why.ok()) {
    const Connection& connection = connections_.at(&session);
    const bool greeted = connection.worker != nullptr || connection.annotates;
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
  if (found->second.annotates) annotations_->OnAnnotatorGone(session);
  connections_.erase(found);
}

// One wake-up asks for everything in the buffer, so the socket is emptied and its contents are
// ignored.
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
    // The tap closed it, never connected it (which is readable for ever), or misused it. The timer
    // keeps reading.
    runner_.RemoveReadableWatch(connection.wake.get());
    connection.wake.Close();
  }
  ScheduleTurn(0);
}

// Requires an order with a spec. A known capture keeps its plan, as orders for it repeat the spec.
TapSource::Capture& TapSource::AddCapture(const SourceOrder& order) {
  auto [entry, is_new] = captures_.try_emplace(order.capture_id);
  Capture& capture = entry->second;
  if (is_new) {
    capture.plan = {order.capture_id, order.spec, {}};
    absl::StatusOr<EventFilter> filter = EventFilter::Parse(order.spec.filter.event_types);
    // The aggregator has checked it; a newer one may allow what this agent does not know.
    // Everything is recorded in that case.
    if (filter.ok()) capture.plan.filter = *std::move(filter);
    if (!filter.ok())
      spdlog::warn("capture {}: {}", order.capture_id.ToString(), filter.status().ToString());
  }
  capture.cursors = order.cursors;
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

void TapSource::OnCaptureListComplete() {
  is_capture_list_complete_ = true;
  for (const auto& worker : workers_) DropUnauthenticated(*worker);
  ScheduleTurn(0);
}

void TapSource::DropUnauthenticated(TapWorker& worker) {
  const CaptureId recorded = worker.tap_capture();
  if (is_capture_list_complete_ && !recorded.empty() && !captures_.contains(recorded))
    worker.Forget(recorded);
}

bool TapSource::CanReturn(const WorkerIdentity& worker) const {
  if (clock_.MonotonicNs() - started_ns_ >= kReturnPatienceNs) return false;
  if (worker.boot_id != boot_id_) return false;
  // A claimed pid does not show whether its process lives; only the time decides then.
  return IsClaimed(worker) || proc_.Lives(worker.pid, worker.start_time_ticks);
}

// Ends the streams in the store whose workers did not outlive the previous agent: they can receive
// nothing more, and how much was lost is unknown. A live worker gets the time that its tap needs to
// find this agent.
void TapSource::EndOrphans(Capture& capture) {
  capture.awaits_workers = false;
  // One status for each worker, with the sums over its streams.
  std::map<WorkerIdentity, CaptureWorkerStatus> lost;
  for (StreamCursor& cursor : capture.cursors) {
    const StreamIdentity& stream = cursor.stream;
    if (stream.kind != StreamKind::kNeuronCore || cursor.ended) continue;
    const bool is_here = std::any_of(workers_.begin(), workers_.end(), [&](const auto& worker) {
      return worker->identity() == stream.worker;
    });
    if (is_here) continue;
    if (CanReturn(stream.worker)) {
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
        status.detail = "the worker and the agent ended before any of its data was stored";
      }
      continue;
    }
    // The stream continues where the store ends, with a loss of unknown size and nothing else.
    auto writer = std::make_unique<StreamWriter>(capture.plan.id, stream, clock_,
                                                 shared_.streams.sink, metrics_);
    writer->Resume(resumed);
    writer->AddLoss(
        cursor.source_position,
        {.place = LossPlace::kTapBuffer,
         .reason = LossReason::kUnknown,
         .events_unknown = true,
         .detail = "the worker and the agent ended; the data in transit between them is lost"});
    writer->End(cursor.source_position);
    status.detail = "the worker and the agent ended; the data delivered before is kept";
    status.events_read += writer->counts().read;
    status.events_stored += writer->counts().stored;
    status.events_lost += writer->counts().lost;
    status.events_lost_unknown = status.events_lost_unknown || writer->counts().lost_unknown;
    ++status.streams;
    capture.orphans.push_back(std::move(writer));
  }
  for (const auto& [worker, status] : lost) shared_.listener.OnCaptureWorker(status);
}

void TapSource::Forget(const CaptureId& capture_id) {
  captures_.erase(capture_id);
  for (const auto& worker : workers_) worker->Forget(capture_id);
  ScheduleTurn(0);
}

// --- Orders: which workers take part in which capture, and when ----------------------------------

void TapSource::ApplyOrder(const SourceOrder& order) {
  using Kind = SourceOrder::Kind;
  // A begin has no spec; a capture that is not for the runtime is unknown here.
  if (order.kind != Kind::kBegin && !order.spec.filter.include_neuron) return;
  switch (order.kind) {
    case Kind::kStart:
      return Start(order);
    case Kind::kArm:
      return Arm(order);
    case Kind::kJoin:
      return Join(order);
    case Kind::kContinue:
      return Continue(order);
    case Kind::kFinish:
      return Finish(order);
    case Kind::kBegin:
      return Begin(order.capture_id, order.begin.value_or(CaptureBegin()));
  }
}

void TapSource::Arm(const SourceOrder& order) {
  const bool is_new = !captures_.contains(order.capture_id);
  Capture& capture = AddCapture(order);
  // A capture that an agent continues by itself may only have been armed when its earlier run was
  // killed.
  if (!capture.stopping && (is_new || capture.unconfirmed)) capture.arming = true;
  capture.unconfirmed = false;
  if (!capture.stopping) JoinAll(capture, false);
}

void TapSource::SetMoment(Capture& capture, const CaptureBegin& begin, bool joins) {
  if (capture.moment) return;
  const HostInstant now = options_.read_host_instant();
  capture.moment = PlanMoment(begin.host_raw_ns, now);
  if (joins && !capture.moment->named && capture.plan.spec.mode == CaptureMode::kSnapshot) {
    // The cut is over, and where it is on this host's clocks is not known: newer events must not be
    // taken for its own.
    capture.moment->monotonic_ns = 0;
    capture.moment->realtime_ns = begin.reference_ns;
  }
  // Taps wait by themselves. At the moment the processors are left to those that begin; the agent
  // then checks for a worker that may have come meanwhile.
  if (capture.moment->monotonic_ns > now.monotonic_ns) {
    After(capture.moment->monotonic_ns - now.monotonic_ns + kTapsFirstNs, &TapSource::NotifyTaps);
  }
}

// Has no effect on a capture that is unknown here, such as one without events of the runtime.
void TapSource::Begin(const CaptureId& capture_id, const CaptureBegin& begin) {
  const auto found = captures_.find(capture_id);
  if (found == captures_.end()) return;
  Capture& capture = found->second;
  capture.executions = {begin.first_execution, begin.last_execution};
  SetMoment(capture, begin, false);
  capture.arming = false;
  if (capture.stopping) return;
  JoinAll(capture, false);
}

// As Start, but in a capture that has begun elsewhere, so whoever begins now is late.
void TapSource::Join(const SourceOrder& order) {
  const CaptureBegin begin = order.begin.value_or(CaptureBegin());
  Capture& capture = AddCapture(order);
  capture.unconfirmed = false;
  capture.executions = {begin.first_execution, begin.last_execution};
  SetMoment(capture, begin, true);
  capture.arming = false;
  if (!capture.stopping) JoinAll(capture, true);
}

void TapSource::Start(const SourceOrder& order) {
  Capture& capture = AddCapture(order);
  capture.unconfirmed = false;
  capture.arming = false;
  if (!capture.moment) capture.moment = PlanMoment(0, options_.read_host_instant());
  if (!capture.stopping) JoinAll(capture, false);
}

// Only workers that record the capture or have streams of it take part (JoinIfMatching).
void TapSource::Continue(const SourceOrder& order) {
  Capture& capture = AddCapture(order);
  capture.unconfirmed = true;
  JoinAll(capture, false);
}

// Only workers with streams of the capture, or a tap that records it, take part, to end them.
void TapSource::Finish(const SourceOrder& order) {
  Capture& capture = AddCapture(order);
  capture.unconfirmed = false;
  if (capture.stopping) return;
  if (order.begin) {
    capture.executions = {order.begin->first_execution, order.begin->last_execution};
  }
  capture.stopping = true;
  JoinAll(capture, false);
  EndOrphans(capture);
}

void TapSource::JoinAll(Capture& capture, bool late) {
  for (const auto& worker : workers_) JoinIfMatching(*worker, capture, late);
  if (capture.plan.spec.conditions.by_execution() && !std::exchange(executions_scheduled_, true)) {
    After(kExecutionsNs, &TapSource::ReportExecutions);
  }
  ScheduleTurn(0);
}

void TapSource::JoinIfMatching(TapWorker& worker, Capture& capture, bool late) {
  const bool has_streams = std::any_of(
      capture.cursors.begin(), capture.cursors.end(),
      [&](const StreamCursor& cursor) { return cursor.stream.worker == worker.identity(); });
  const bool records_it = worker.tap_capture() == capture.plan.id;
  const bool is_new = !has_streams && !records_it && !worker.has(capture.plan.id);
  // A worker without a part in such a capture stays without one.
  const bool begins_nothing = capture.stopping || capture.unconfirmed;
  if (is_new && (begins_nothing || !worker.Matches(capture.plan.spec))) return;
  // Also for workers that take part already: cursors, moment or executions may be new.
  worker.Join(capture.plan, capture.cursors,
              {.confirmed = !capture.unconfirmed,
               .arm = capture.arming,
               .moment = capture.moment,
               .late = late && !has_streams && !records_it,
               .executions = capture.executions});
  if (capture.stopping) worker.Stop(capture.plan.id);
}

// A worker whose job or ranks have become known may now match a capture that passed it by.
void TapSource::JoinChangedWorkers() {
  for (const auto& worker : workers_) {
    if (!worker->TakeInfoChanged()) continue;
    for (auto& [id, capture] : captures_) {
      if (!capture.stopping && !worker->has(id)) JoinIfMatching(*worker, capture, true);
    }
  }
}

void TapSource::NotifyTaps() {
  for (const auto& worker : workers_) worker->ReportDue();
}

void TapSource::ReportExecutions() {
  bool any = false;
  for (const auto& worker : workers_) any = worker->ReportExecutions() || any;
  executions_scheduled_ = any;
  if (any) After(kExecutionsNs, &TapSource::ReportExecutions);
}

void TapSource::Stop(const CaptureId& capture_id, uint64_t host_raw_ns) {
  const auto found = captures_.find(capture_id);
  if (found == captures_.end() || found->second.stopping) return;
  found->second.stopping = true;
  const HostInstant now = options_.read_host_instant();
  // Taps stop by themselves at the moment; the agent checks on them then.
  const PlannedMoment moment = PlanMoment(host_raw_ns, now);
  const bool waits = moment.monotonic_ns > now.monotonic_ns;
  for (const auto& worker : workers_) worker->Stop(capture_id, waits ? moment.monotonic_ns : 0);
  if (waits) After(moment.monotonic_ns - now.monotonic_ns, &TapSource::NotifyTaps);
  EndOrphans(found->second);
  ScheduleTurn(0);
}

bool TapSource::IsFinished(const CaptureId& capture_id) const {
  const auto found = captures_.find(capture_id);
  if (found == captures_.end()) return true;
  const Capture& capture = found->second;
  const bool ends_itself = capture.plan.spec.mode == CaptureMode::kSnapshot && capture.moment;
  return (capture.stopping || ends_itself) && !capture.awaits_workers &&
         std::all_of(workers_.begin(), workers_.end(),
                     [&](const auto& worker) { return worker->IsFinished(capture_id); }) &&
         std::all_of(capture.orphans.begin(), capture.orphans.end(),
                     [](const auto& orphan) { return orphan->finished(); });
}

// --- By the clock: reading in turns, and upkeep --------------------------------------------------

void TapSource::After(uint64_t delay_ns, void (TapSource::*member)()) {
  runner_.PostDelayedTask(weak_tasks_.Wrap([this, member] { (this->*member)(); }), delay_ns);
}

void TapSource::ScheduleTurn(uint64_t delay_ns) {
  if (turn_scheduled_) return;
  turn_scheduled_ = true;
  After(delay_ns, &TapSource::Turn);
}

std::vector<TapWorker*> TapSource::WorkersToRead() {
  std::vector<WaitingReader> waiting;
  for (size_t i = 0; i < workers_.size(); ++i) {
    const TapWorker& worker = *workers_[i];
    if (worker.HasMore()) waiting.push_back({i, worker.NsToBufferFull(), worker.last_turn()});
  }
  std::vector<TapWorker*> workers;
  for (const WaitingReader& reader : ReadingOrder(std::move(waiting), ++turn_)) {
    workers.push_back(workers_[reader.index].get());
  }
  return workers;
}

TapSource::Headroom TapSource::headroom() const {
  Headroom headroom;
  for (const auto& worker : workers_) {
    worker->AddRingHeadroom(headroom.rings);
    const uint64_t ns = worker->NsToBufferFull();
    if (ns != FillRate::kUnknownNs) headroom.buffer = std::min(headroom.buffer.value_or(ns), ns);
  }
  return headroom;
}

std::map<uint32_t, TapWorker::Load> TapSource::loads() const {
  std::map<uint32_t, TapWorker::Load> loads;
  for (const auto& worker : workers_) loads[worker->identity().pid] = worker->load();
  return loads;
}

// Each worker gets a share of the turn. A further turn follows at once while a share was not
// enough, and after a pause while anything was read; otherwise the taps are asked to wake the
// agent.
void TapSource::Turn() {
  turn_scheduled_ = false;
  bool more = false;
  bool any = false;
  std::vector<TapSession*> broken;
  for (TapWorker* const worker : WorkersToRead()) {
    const uint64_t before = worker->reader().position();
    const absl::StatusOr<bool> read = worker->Read(kBytesPerWorker);
    if (worker->reader().position() != before) {
      any = true;
      worker->RecordTurn(turn_);
    }
    if (read.ok()) {
      more = more || *read;
      continue;
    }
    AgentSourceMetrics::Add(metrics_.taps_misbehaved);
    spdlog::warn("worker {} was disconnected: {}", ToString(worker->identity()),
                 std::string(read.status().message()));
    // Not closed at once: CloseConnection changes connections_ and the worker's state.
    for (const auto& [session, connection] : connections_) {
      if (connection.worker == worker) broken.push_back(session);
    }
  }
  for (TapSession* const session : broken) CloseConnection(*session);
  if (more) return ScheduleTurn(0);
  if (!any) {
    for (const auto& worker : workers_) any = worker->WaitForMore() || any;
  }
  if (any) ScheduleTurn(kBusyPauseNs);
}

// Ranks are resolved before selections are compared, which may depend on them.
void TapSource::Tick() {
  After(kTickNs, &TapSource::Tick);
  DropSilentConnections();
  for (const auto& worker : workers_) worker->Tick();
  for (auto& [id, capture] : captures_) {
    if (capture.awaits_workers) EndOrphans(capture);
  }
  ResolveRanks();
  JoinChangedWorkers();
  RemoveDoneWorkers();
  ScheduleTurn(0);
}

void TapSource::Flush() {
  for (const auto& worker : workers_) worker->Flush();
}

void TapSource::DropSilentConnections() {
  std::vector<TapSession*> silent;
  for (const auto& [key, connection] : connections_) {
    if (!key->greeted() && clock_.MonotonicNs() - key->connected_ns() >= kGreetingPatienceNs) {
      silent.push_back(key);
    }
  }
  for (TapSession* const session : silent) {
    AgentSourceMetrics::Add(metrics_.taps_refused);
    CloseConnection(*session);
  }
}

// Returns which workers may be given a place, in the order of workers_.
std::vector<bool> TapSource::FindPlaceable() const {
  const uint64_t now_ns = clock_.MonotonicNs();
  std::map<std::string_view, uint64_t> newest;  // arrival of each job's
  for (const auto& worker : workers_) {
    uint64_t& arrived = newest[worker->job()];
    arrived = std::max(arrived, worker->arrived_ns());
  }
  std::vector<bool> placeable;
  for (const auto& worker : workers_) {
    placeable.push_back(now_ns - started_ns_ >= kPlacePatienceNs &&
                        (now_ns - newest[worker->job()] >= kPlacePauseNs ||
                         now_ns - worker->arrived_ns() >= kPlaceWaitMaxNs));
  }
  return placeable;
}

void TapSource::ResolveRanks() {
  bool changed = std::exchange(membership_changed_, false);
  const std::vector<bool> placeable = FindPlaceable();
  for (size_t i = 0; i < workers_.size(); ++i) {
    changed = workers_[i]->TakeRanksChanged() || changed;
    changed = changed || (placeable[i] && workers_[i]->AwaitsPlace());
  }
  if (!changed) return;
  std::vector<RankFacts> facts;
  for (size_t i = 0; i < workers_.size(); ++i) {
    facts.push_back(workers_[i]->rank_facts());
    facts.back().may_be_placed = placeable[i];
  }
  // Workers that ended still contradict those that ran beside them.
  facts.insert(facts.end(), departed_.begin(), departed_.end());
  const std::vector<RankResolution> ranks = ranks_(facts);
  for (size_t i = 0; i < workers_.size(); ++i) workers_[i]->SetRanks(ranks[i], placeable[i]);
}

void TapSource::ForgetDeparted() {
  std::vector<RankFacts> here;
  for (const auto& worker : workers_) here.push_back(worker->rank_facts());
  std::erase_if(departed_, [&](const RankFacts& departed) {
    return std::none_of(here.begin(), here.end(),
                        [&](const RankFacts& facts) { return RanTogether(facts, departed); });
  });
  if (departed_.size() <= kDepartedMax) return;
  departed_.erase(departed_.begin(), departed_.end() - static_cast<ptrdiff_t>(kDepartedMax));
}

void TapSource::RemoveDoneWorkers() {
  const size_t before = workers_.size();
  for (const auto& worker : workers_) {
    if (!worker->done()) continue;
    departed_.push_back(worker->rank_facts());
    if (!departed_.back().ended_ns) departed_.back().ended_ns = clock_.MonotonicNs();
  }
  std::erase_if(workers_, [](const auto& worker) { return worker->done(); });
  if (workers_.size() == before) return;
  ForgetDeparted();
  membership_changed_ = true;
  metrics_.workers.store(workers_.size(), std::memory_order_relaxed);
}

}  // namespace neurontrace
