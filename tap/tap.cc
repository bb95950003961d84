// SPDX-License-Identifier: Apache-2.0
// The tap's thread alternates between Step and Sleep. Its state has two halves: what the agent
// wants (wanted_, spec_) and what the runtime does (trace_). Each step compares them. It starts a
// wanted trace as soon as the runtime may be called, and stops one that is no longer wanted, has
// lost its agent, or is in the application's way. A trace that made way for the application stays
// wanted, and continues as the same capture (resumed_) when the way is free.
//
// A COLLECT does not change what is wanted: it reads the rings of a trace that holds them, one
// collection after another, in the order of their times.
#include "tap/tap.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace neurontrace::tap {
namespace {

// Returns how a trace ends that makes way for this claim.
TapStopReason ReasonOf(RuntimeGate::Claim claim) {
  switch (claim) {
    case RuntimeGate::Claim::kClose:
      return TapStopReason::kRuntimeClosed;
    case RuntimeGate::Claim::kExit:
      return TapStopReason::kProcessExit;
    default:
      return TapStopReason::kYielded;
  }
}

uint64_t Earlier(uint64_t a, uint64_t b) { return a < b ? a : b; }

}  // namespace

const char* TapStateName(TapState state) {
  switch (state) {
    case TapState::kNotInitialised:
      return kTapNameNotInitialised;
    case TapState::kIdle:
      return "idle";
    case TapState::kStreaming:
      return "streaming";
    case TapState::kBusyOtherProfiler:
      return "busy: other profiler";
    case TapState::kRuntimeTooOld:
      return "runtime too old";
    case TapState::kClosed:
      return kTapNameClosed;
    case TapState::kExited:
      return "exited";
    case TapState::kStartFailed:
      return "start failed";
    case TapState::kHolding:
      return "holding";
  }
  return "unknown";
}

bool Tap::Open(RuntimeGate* gate, WorkerFacts* worker_facts, const NrtLibrary* library,
               const TapClock* clock, const char* socket_path, uint64_t ring_bytes) {
  gate_ = gate;
  worker_facts_ = worker_facts;
  library_ = library;
  clock_ = clock;
  if (!buffer_.Create(ring_bytes, clock->realtime_ns())) return false;
  TapBufferHeader* header = buffer_.header();
  ring_.Attach(header, buffer_.ring(), ring_bytes);
  facts_.Attach(buffer_.facts(), &header->counters);
  trace_.Attach(library, &ring_, &header->counters, clock, ring_bytes);
  connection_.SetPath(socket_path);
  return true;
}

Tap::~Tap() {
  connection_.CloseDescriptors();
  buffer_.Destroy();
}

uint64_t Tap::Step() {
  // The order of one step: waiting application threads first, then life cycle and commands, which
  // decide what is wanted, then the trace. State and facts are published last, so that the agent
  // sees the result of the whole step.
  view_ = gate_->Observe();
  ReleaseIfAsked();
  FollowLifecycle();
  const uint64_t now_ns = clock_->monotonic_ns();
  ServeAgent(now_ns);
  StopOrphan(now_ns);
  StopIfDue(now_ns);
  StartIfRequested(now_ns);
  DrainIfDue(now_ns);
  CollectIfDue(now_ns);
  if (now_ns >= quiet_until_ns_) {
    quiet_until_ns_ = 0;
    PublishState(now_ns);
    NotifyConsumer();
  }
  ReleaseMemory(now_ns);
  // The records are in the ring, which outlives the process as long as the agent has it open.
  if (exit_reported_) gate_->AcknowledgeExit();
  return NextDeadlineNs();
}

void Tap::Sleep(uint64_t deadline_ns) {
  const uint64_t now_ns = clock_->monotonic_ns();
  timespec timeout = {};
  if (deadline_ns != kNeverNs && deadline_ns > now_ns) {
    timeout.tv_sec = static_cast<time_t>((deadline_ns - now_ns) / kNsPerSecond);
    timeout.tv_nsec = static_cast<long>((deadline_ns - now_ns) % kNsPerSecond);
  }
  const short socket_events =
      static_cast<short>(connection_.WantsToSend() ? POLLIN | POLLOUT : POLLIN);
  pollfd watched[2] = {{gate_->wake_fd(), POLLIN, 0}, {connection_.fd(), socket_events, 0}};
  const int ready = ppoll(watched, 2, deadline_ns == kNeverNs ? nullptr : &timeout, nullptr);
  // Cleared before the next step observes the gate, so that no wake-up is lost.
  if (ready > 0 && watched[0].revents != 0) gate_->ClearWake();
}

void Tap::CloseDescriptors() {
  connection_.CloseDescriptors();
  if (buffer_.valid()) close(buffer_.fd());
}

void Tap::ReleaseIfAsked() {
  if (!trace_.running()) return;
  if (view_.claimed) {
    StopTrace(ReasonOf(view_.claim));
  } else if (!view_.initialised || view_.profilers != 0) {
    StopTrace(TapStopReason::kYielded);
  }
}

void Tap::FollowLifecycle() {
  if (view_.inits != inits_seen_) {
    inits_seen_ = view_.inits;
    // A new runtime has new rings, other facts, and may accept what the old one refused.
    buffer_.header()->init_count.store(inits_seen_, std::memory_order_relaxed);
    WriteLifecycle(TapLifecycleEvent::kInit);
    start_at_ns_ = 0;
    refusal_ = Refusal::kNone;
    runtime_facts_.complete = false;
    facts_stale_ = true;
  }
  if (view_.closes != closes_seen_) {
    closes_seen_ = view_.closes;
    WriteLifecycle(TapLifecycleEvent::kClose);
  }
  if (view_.exiting && !exit_reported_) {
    exit_reported_ = true;
    WriteLifecycle(TapLifecycleEvent::kExit);
  }
  if (view_.profilers != profilers_seen_) {
    profilers_seen_ = view_.profilers;
    // If the profilers have ended, the tap's turn comes at once.
    start_at_ns_ = 0;
    refusal_ = Refusal::kNone;
  }
}

void Tap::WriteLifecycle(TapLifecycleEvent event) {
  TapLifecycle record = {static_cast<uint32_t>(event), kNrtSuccess};
  ring_.AppendControl(TapRecordType::kLifecycle, 0, clock_->realtime_ns(), &record, sizeof record);
}

void Tap::StopOrphan(uint64_t now_ns) {
  if (!wanted_ || connection_.connected()) return;
  if (now_ns - connection_.disconnected_since_ns() < kOrphanTimeoutNs) return;
  StopTrace(TapStopReason::kOrphaned);
  wanted_ = false;
}

void Tap::StartIfRequested(uint64_t now_ns) {
  if (!wanted_ || trace_.running() || !library_->CanTrace()) return;
  if (now_ns < start_at_ns_ || now_ns < begin_at_ns_) return;
  if (!gate_->Enter()) return;
  const RuntimeTrace::Start start = trace_.Begin(spec_, resumed_);
  gate_->Leave(trace_.running());
  if (now_ns - begin_at_ns_ < kQuietAfterBeginNs)
    quiet_until_ns_ = begin_at_ns_ + kQuietAfterBeginNs;
  RecordStart(start, now_ns);
}

void Tap::RecordStart(const RuntimeTrace::Start& start, uint64_t now_ns) {
  nrt_status_ = start.status;
  switch (start.status) {
    case kNrtSuccess:
      resumed_ = true;
      refusal_ = Refusal::kNone;
      start_pause_ns_ = kStartRetryFirstNs;
      detail_[0] = '\0';
      if (start.unfiltered || start.unknown_names > 0) {
        snprintf(detail_, sizeof detail_, "%u event types unknown to this runtime%s",
                 start.unknown_names,
                 start.unfiltered ? "; it cannot apply the filter and records more" : "");
      }
      return;
    // The application closed the runtime by a way that the tap does not see.
    case kNrtUninitialized:
    case kNrtClosed:
      gate_->SetRuntimeClosed();
      return;
    case kNrtResource:
    case kNrtHostMemory:
      RetryStartLater(Refusal::kFailed, now_ns);
      snprintf(detail_, sizeof detail_,
               "the runtime has no memory for the trace (status %d): request fewer events per core",
               start.status);
      return;
    // The runtime has a single capture, so any other refusal means that another profiler has it.
    default:
      RetryStartLater(Refusal::kBusy, now_ns);
      snprintf(detail_, sizeof detail_,
               "the runtime refused to start a trace (status %d): another profiler uses it",
               start.status);
  }
}

void Tap::RetryStartLater(Refusal refusal, uint64_t now_ns) {
  refusal_ = refusal;
  start_at_ns_ = now_ns + start_pause_ns_;
  start_pause_ns_ = Earlier(start_pause_ns_ * 2, kStartRetryMaxNs);
}

void Tap::StopTrace(TapStopReason reason) {
  if (!trace_.running()) return;
  if (gate_->EnterToRelease()) {
    trace_.End(reason, true);
  } else {
    // The runtime is gone: only the end of the trace is recorded.
    trace_.End(TapStopReason::kFetchFailed, false);
  }
  NotifyConsumer();
  gate_->Leave(false);
  ForgetCollections(clock_->monotonic_ns());
}

void Tap::DrainIfDue(uint64_t now_ns) {
  if (!trace_.running() || trace_.holds() || trace_.NextDueNs() > now_ns) return;
  if (!gate_->Enter()) return;  // claimed: the next step gives the runtime back
  const bool there = trace_.DrainDue(gate_->waiting());
  gate_->Leave(true);
  if (!there) LoseTrace(now_ns);
}

void Tap::LoseTrace(uint64_t now_ns) {
  nrt_status_ = trace_.last_error();
  const bool closed = nrt_status_ == kNrtUninitialized || nrt_status_ == kNrtClosed;
  // If the tap sees the application's calls, no other caller can have started a trace, so this one
  // is the tap's to stop. If it does not, the trace may be a profiler's by now.
  const bool ours = !closed && !view_.vouched && gate_->EnterToRelease();
  trace_.End(TapStopReason::kFetchFailed, ours);
  gate_->Leave(false);
  ForgetCollections(now_ns);
  if (closed) {
    gate_->SetRuntimeClosed();
    return;
  }
  RetryStartLater(Refusal::kBusy, now_ns);
  snprintf(detail_, sizeof detail_, "fetching failed %u times in a row (status %d)",
           RuntimeTrace::kFetchErrorsInARowMax, nrt_status_);
}

TapState Tap::CurrentState() const {
  if (view_.exiting) return TapState::kExited;
  if (!view_.initialised) {
    return view_.inits == 0 ? TapState::kNotInitialised : TapState::kClosed;
  }
  if (!library_->CanTrace()) return TapState::kRuntimeTooOld;
  if (trace_.running()) return trace_.holds() ? TapState::kHolding : TapState::kStreaming;
  const bool yields = view_.claimed && view_.claim == RuntimeGate::Claim::kYield;
  if (view_.profilers != 0 || yields) return TapState::kBusyOtherProfiler;
  if (refusal_ == Refusal::kBusy) return TapState::kBusyOtherProfiler;
  if (refusal_ == Refusal::kFailed) return TapState::kStartFailed;
  return TapState::kIdle;
}

void Tap::PublishState(uint64_t now_ns) {
  view_ = gate_->Observe();
  const TapState state = CurrentState();
  const bool is_new = state != state_ || !state_published_;
  if (is_new) {
    state_ = state;
    state_published_ = true;
    facts_stale_ = true;
    ExplainState();
  }
  // First the facts, which have the reason of the state: whoever sees the one can read the other.
  if (facts_stale_ || facts_version_ != worker_facts_->version()) PublishFacts();
  if (!is_new) return;
  TapBufferHeader* header = buffer_.header();
  header->state.store(static_cast<uint32_t>(state), std::memory_order_release);
  header->state_changes.fetch_add(1, std::memory_order_release);
  Answer(TapResult::kNone, wanted_ ? spec_.capture_id : nullptr, detail_, now_ns);
}

void Tap::ExplainState() {
  if (state_ == TapState::kRuntimeTooOld) {
    snprintf(detail_, sizeof detail_,
             "this libnrt.so.1 lacks nrt_sys_trace_fetch_events or related calls: use Neuron SDK "
             "2.22 or later");
  } else if (state_ == TapState::kBusyOtherProfiler && refusal_ == Refusal::kNone) {
    snprintf(detail_, sizeof detail_,
             "the application profiles itself (nrt_sys_trace_start, nrt_inspect_begin or "
             "NEURON_RT_INSPECT_ENABLE): waiting until it stops");
  } else if (!trace_.running() && refusal_ == Refusal::kNone) {
    detail_[0] = '\0';
  }
}

void Tap::PublishFacts() {
  facts_version_ = worker_facts_->version();
  facts_.Begin();
  facts_.Add(kTapStateFact, TapStateName(state_));
  if (detail_[0] != '\0') facts_.Add("tap.detail", detail_);
  worker_facts_->AddTo(&facts_);
  if (!runtime_facts_.complete && gate_->EnterForFacts()) {
    runtime_facts_.Gather(*library_);
    gate_->Leave(trace_.running());
  }
  // If the application is about to close or to profile, its call has priority and the facts are
  // gathered later.
  facts_stale_ = view_.initialised && !view_.exiting && !runtime_facts_.complete;
  runtime_facts_.AddTo(&facts_);
  AddProcessFacts(&facts_);
  facts_.Publish();
  facts_are_news_ = true;
}

void Tap::NotifyConsumer() {
  TapBufferHeader* header = buffer_.header();
  const uint64_t write_pos = ring_.write_pos();
  if (write_pos == notified_pos_ && !facts_are_news_) return;
  notified_pos_ = write_pos;
  facts_are_news_ = false;
  // Pairs with the agent, which sets consumer_waiting and then reads write_pos again: one of the
  // two sees the other's write, so no wake-up is lost.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (header->consumer_waiting.exchange(0, std::memory_order_seq_cst) != 0) connection_.SendWake();
}

void Tap::ReleaseMemory(uint64_t now_ns) {
  // A trace that holds writes nothing until it is asked to.
  const bool holds = trace_.holds() && !trace_.collecting();
  if ((wanted_ || trace_.running()) && !holds) {
    release_memory_at_ns_ = now_ns + kReleaseMemoryFirstNs;
    release_memory_pause_ns_ = kReleaseMemoryFirstNs;
    return;
  }
  if (now_ns < release_memory_at_ns_) return;
  if (ring_.empty()) {
    buffer_.ReleaseRingPages();
    release_memory_at_ns_ = kNeverNs;
    return;
  }
  // The agent still has to commit what it has read.
  release_memory_at_ns_ = now_ns + release_memory_pause_ns_;
  release_memory_pause_ns_ = Earlier(release_memory_pause_ns_ * 2, kReleaseMemoryMaxNs);
}

uint64_t Tap::NextDeadlineNs() const {
  uint64_t next = Earlier(connection_.RetryAtNs(), trace_.NextDueNs());
  if (quiet_until_ns_ != 0) next = Earlier(next, quiet_until_ns_);
  const bool holds = trace_.holds() && !trace_.collecting();
  if ((!wanted_ && !trace_.running()) || holds) next = Earlier(next, release_memory_at_ns_);
  if (!wanted_) return next;
  next = Earlier(next, Earlier(stop_at_ns_, NextCollectionNs()));
  const bool can_start = view_.initialised && !view_.exiting && !view_.claimed &&
                         view_.profilers == 0 && library_->CanTrace();
  if (!trace_.running() && can_start) {
    next = Earlier(next, start_at_ns_ > begin_at_ns_ ? start_at_ns_ : begin_at_ns_);
  }
  if (!connection_.connected()) {
    next = Earlier(next, connection_.disconnected_since_ns() + kOrphanTimeoutNs);
  }
  return next;
}

// --- Collecting from rings that are held ---------------------------------------------------------

void Tap::HandleCollect(uint64_t now_ns) {
  const uint8_t* asked = command_.spec.capture_id;
  // An agent that was restarted repeats its commands; the contents must not be collected twice.
  if (WasCollected(asked)) {
    Answer(TapResult::kOk, asked, "", now_ns);
    return;
  }
  const bool in_progress = trace_.collecting() && SameCaptureId(collecting_.capture_id, asked);
  if (!in_progress &&
      (!wanted_ || !SameCaptureId(spec_.capture_id, command_.recorder_id) || !trace_.holds())) {
    Answer(TapResult::kNothingHeld, asked,
           trace_.running() ? "the rings are not held for this flight recorder"
                            : "the rings are not held now",
           now_ns);
    return;
  }
  if (!in_progress && !IsWaiting(asked)) {
    if (collection_count_ == kTapCollectsMax) {
      Answer(TapResult::kAnotherCapture, asked, "too many snapshots are scheduled", now_ns);
      return;
    }
    Collection& collection = collections_[collection_count_++];
    memcpy(collection.capture_id, asked, sizeof collection.capture_id);
    collection.at_ns = command_.at_ns;
  }
  Answer(TapResult::kAccepted, asked, "", now_ns);
}

void Tap::CollectIfDue(uint64_t now_ns) {
  if (!trace_.holds()) return;
  if (!trace_.collecting()) {
    if (NextCollectionNs() > now_ns) return;
    uint32_t first = 0;
    for (uint32_t i = 1; i < collection_count_; ++i) {
      if (collections_[i].at_ns < collections_[first].at_ns) first = i;
    }
    collecting_ = collections_[first];
    collections_[first] = collections_[--collection_count_];
    trace_.BeginCollection(spec_, collecting_.capture_id);
  }
  if (trace_.NextDueNs() > now_ns) return;
  if (!gate_->Enter()) return;  // claimed: the next step gives the runtime back
  const RuntimeTrace::Collected collected = trace_.Collect(gate_->waiting());
  gate_->Leave(true);
  switch (collected) {
    case RuntimeTrace::Collected::kMore:
      return;
    case RuntimeTrace::Collected::kGone:
      return LoseTrace(now_ns);
    case RuntimeTrace::Collected::kDone:
      trace_.EndCollection(TapStopReason::kCollected);
      RecordCollected(now_ns);
  }
}

void Tap::RecordCollected(uint64_t now_ns) {
  memcpy(collected_[collected_next_], collecting_.capture_id, kTapCaptureIdBytes);
  collected_next_ = (collected_next_ + 1) % kTapCollectsMax;
  NotifyConsumer();
  SendStatus(TapMessageType::kCollect, TapResult::kOk, collecting_.capture_id, "", now_ns);
  memset(&collecting_, 0, sizeof collecting_);
}

// The trace has ended, and with it the contents of its rings.
void Tap::ForgetCollections(uint64_t now_ns) {
  static constexpr uint8_t kNone[kTapCaptureIdBytes] = {};
  if (!SameCaptureId(collecting_.capture_id, kNone)) RecordCollected(now_ns);
  while (collection_count_ > 0) {
    SendStatus(TapMessageType::kCollect, TapResult::kNothingHeld,
               collections_[--collection_count_].capture_id,
               "the rings were released before the cut", now_ns);
  }
}

// Ends a collection or removes one that waits. Returns false if the id is of neither.
bool Tap::StopCollection(const uint8_t* capture_id, uint64_t now_ns) {
  if (trace_.collecting() && SameCaptureId(collecting_.capture_id, capture_id)) {
    trace_.EndCollection(TapStopReason::kCommand);
    RecordCollected(now_ns);
    Answer(TapResult::kOk, capture_id, "", now_ns);
    return true;
  }
  for (uint32_t i = 0; i < collection_count_; ++i) {
    if (!SameCaptureId(collections_[i].capture_id, capture_id)) continue;
    collections_[i] = collections_[--collection_count_];
    Answer(TapResult::kOk, capture_id, "", now_ns);
    return true;
  }
  return false;
}

bool Tap::IsWaiting(const uint8_t* capture_id) const {
  for (uint32_t i = 0; i < collection_count_; ++i) {
    if (SameCaptureId(collections_[i].capture_id, capture_id)) return true;
  }
  return false;
}

bool Tap::WasCollected(const uint8_t* capture_id) const {
  for (const auto& collected : collected_) {
    if (SameCaptureId(collected, capture_id)) return true;
  }
  return false;
}

uint64_t Tap::NextCollectionNs() const {
  uint64_t next = kNeverNs;
  // One collection after the other.
  if (!trace_.holds() || trace_.collecting()) return next;
  for (uint32_t i = 0; i < collection_count_; ++i) {
    if (collections_[i].at_ns < next) next = collections_[i].at_ns;
  }
  return next;
}

// --- The agent -----------------------------------------------------------------------------------

void Tap::ServeAgent(uint64_t now_ns) {
  if (connection_.ConnectIfDue(now_ns)) {
    // Nothing of this comes from the shared header, which an earlier agent may have overwritten.
    TapHello hello = {};
    hello.header = {kTapMessageMagic, kTapProtocolVersion,
                    static_cast<uint16_t>(TapMessageType::kHello), sizeof hello, 0};
    hello.claimed_pid = static_cast<uint32_t>(getpid());
    hello.claimed_uid = static_cast<uint32_t>(getuid());
    hello.process_start_ticks = ProcessStartTicks();
    hello.buffer_bytes = buffer_.total_bytes();
    hello.state = static_cast<uint32_t>(CurrentState());
    hello.protocol_newest = kTapProtocolVersion;
    if (wanted_) memcpy(hello.capture_id, spec_.capture_id, sizeof hello.capture_id);
    strncpy(hello.tap_version, NEURONTRACE_VERSION, sizeof hello.tap_version - 1);
    connection_.SendHello(hello, buffer_.fd(), now_ns);
  }
  for (uint32_t i = 0; i < kCommandsPerStep && connection_.connected(); ++i) {
    const long size = connection_.Receive(packet_, sizeof packet_, now_ns);
    if (size <= 0) break;
    ServePacket(size, now_ns);
  }
  connection_.Flush(now_ns);
}

void Tap::ServePacket(long size, uint64_t now_ns) {
  const char* wrong = nullptr;
  if (!connection_.TakeCommandToken(now_ns)) {
    wrong = "too many commands";
  } else if (size > static_cast<long>(sizeof packet_)) {
    wrong = "the message is too long";
  } else {
    wrong = ParseCommand(packet_, static_cast<size_t>(size), &command_);
  }
  if (wrong != nullptr) {
    buffer_.header()->counters.invalid_commands.fetch_add(1, std::memory_order_relaxed);
    Answer(TapResult::kInvalid, nullptr, wrong, now_ns);
    connection_.Drop(now_ns, true);
    return;
  }
  // A wrong time must not reserve the worker for long.
  if (command_.at_ns > now_ns && command_.at_ns - now_ns > kAheadMaxNs) {
    Answer(TapResult::kTooFarAhead, command_.spec.capture_id,
           "the command's time is too far in the future", now_ns);
    return;
  }
  switch (command_.type) {
    case TapMessageType::kStart:
      return HandleStart(now_ns);
    case TapMessageType::kCollect:
      return HandleCollect(now_ns);
    default:
      return HandleStop(now_ns);
  }
}

void Tap::HandleStart(uint64_t now_ns) {
  if (wanted_ && !SameCaptureId(spec_.capture_id, command_.spec.capture_id)) {
    Answer(TapResult::kAnotherCapture, spec_.capture_id,
           "another capture is running; stop it first", now_ns);
    return;
  }
  if (view_.initialised && !library_->CanTrace()) {
    Answer(TapResult::kUnsupported, command_.spec.capture_id, detail_, now_ns);
    return;
  }
  if (!wanted_) {
    spec_ = command_.spec;
    wanted_ = true;
    resumed_ = false;
    start_at_ns_ = 0;
    start_pause_ns_ = kStartRetryFirstNs;
    stop_at_ns_ = kNeverNs;
    detail_[0] = '\0';
  }
  // The begin of a capture that already ran is in the past, whatever the agent repeats.
  if (!resumed_) {
    begin_at_ns_ = command_.at_ns;
    StartIfRequested(now_ns);
    PublishState(now_ns);
  }
  Answer(trace_.running() ? TapResult::kOk : TapResult::kAccepted, spec_.capture_id, detail_,
         now_ns);
}

void Tap::HandleStop(uint64_t now_ns) {
  const uint8_t* asked = command_.spec.capture_id;
  if (StopCollection(asked, now_ns)) return;
  if (!wanted_) {
    Answer(TapResult::kNotRunning, asked, "", now_ns);
    return;
  }
  if (!SameCaptureId(spec_.capture_id, asked)) {
    Answer(TapResult::kAnotherCapture, spec_.capture_id, "another capture is running", now_ns);
    return;
  }
  stop_at_ns_ = command_.at_ns;
  if (stop_at_ns_ > now_ns) {
    Answer(TapResult::kAccepted, asked, "", now_ns);
  } else {
    StopCapture(now_ns);
  }
}

void Tap::StopCapture(uint64_t now_ns) {
  StopTrace(TapStopReason::kCommand);
  wanted_ = false;
  refusal_ = Refusal::kNone;
  detail_[0] = '\0';
  PublishState(now_ns);
  SendStatus(TapMessageType::kStop, TapResult::kOk, spec_.capture_id, "", now_ns);
}

void Tap::StopIfDue(uint64_t now_ns) {
  if (wanted_ && now_ns >= stop_at_ns_) StopCapture(now_ns);
}

void Tap::Answer(TapResult result, const uint8_t* capture_id, const char* detail, uint64_t now_ns) {
  SendStatus(command_.type, result, capture_id, detail, now_ns);
}

void Tap::SendStatus(TapMessageType command, TapResult result, const uint8_t* capture_id,
                     const char* detail, uint64_t now_ns) {
  TapStatus status = {};
  status.state = static_cast<uint32_t>(state_);
  status.result = static_cast<uint32_t>(result);
  status.command = result == TapResult::kNone ? 0 : static_cast<uint32_t>(command);
  status.nrt_status = nrt_status_;
  if (capture_id != nullptr) memcpy(status.capture_id, capture_id, sizeof status.capture_id);
  connection_.SendStatus(status, detail, now_ns);
}

}  // namespace neurontrace::tap
