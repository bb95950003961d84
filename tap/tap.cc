// SPDX-License-Identifier: Apache-2.0
#include "tap/tap.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace neurontrace::tap {

namespace {

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
  view_ = gate_->Observe();
  ReleaseIfAsked();
  FollowLifecycle();
  const uint64_t now_ns = clock_->monotonic_ns();
  ServeAgent(now_ns);
  StopOrphan(now_ns);
  StopIfDue(now_ns);
  StartIfWanted(now_ns);
  DrainIfDue(now_ns);
  CollectIfDue(now_ns);
  if (now_ns >= quiet_until_ns_) {
    quiet_until_ns_ = 0;
    PublishState(now_ns);
    NotifyConsumer();
  }
  GiveMemoryBack(now_ns);
  if (exit_told_) gate_->AcknowledgeExit();
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
  if (view_.exiting && !exit_told_) {
    exit_told_ = true;
    WriteLifecycle(TapLifecycleEvent::kExit);
  }
  if (view_.profilers != profilers_seen_) {
    profilers_seen_ = view_.profilers;
    start_at_ns_ = 0;  // if they are done, it is our turn at once
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

void Tap::StartIfWanted(uint64_t now_ns) {
  if (!wanted_ || trace_.running() || !library_->CanTrace()) return;
  if (now_ns < start_at_ns_ || now_ns < begin_at_ns_) return;
  if (!gate_->Enter()) return;
  const RuntimeTrace::Start start = trace_.Begin(spec_, resumed_);
  gate_->Leave(trace_.running());
  if (now_ns - begin_at_ns_ < kQuietAfterBeginNs)
    quiet_until_ns_ = begin_at_ns_ + kQuietAfterBeginNs;
  NoteStart(start, now_ns);
}

void Tap::NoteStart(const RuntimeTrace::Start& start, uint64_t now_ns) {
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
                 start.unfiltered ? "; it cannot filter as asked and records more" : "");
      }
      return;
    case kNrtUninitialized:
    case kNrtClosed:
      gate_->SetRuntimeGone();
      return;
    case kNrtResource:
    case kNrtHostMemory:
      RetryStartLater(Refusal::kFailed, now_ns);
      snprintf(detail_, sizeof detail_,
               "the runtime has no memory for the trace (status %d): ask for fewer events per core",
               start.status);
      return;
    default:
      RetryStartLater(Refusal::kBusy, now_ns);
      snprintf(detail_, sizeof detail_,
               "the runtime refused to start a trace (status %d): another profiler has it",
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
    trace_.End(TapStopReason::kFetchFailed, false);  // the runtime is gone: only say so
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
  // Where we see the application's calls, nobody else can have started a trace, so this one is ours
  // to stop. Where we do not, it may be a profiler's by now.
  const bool ours = !closed && !view_.vouched && gate_->EnterToRelease();
  trace_.End(TapStopReason::kFetchFailed, ours);
  gate_->Leave(false);
  ForgetCollections(now_ns);
  if (closed) {
    gate_->SetRuntimeGone();
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
  if (state != state_ || !state_published_) {
    state_ = state;
    state_published_ = true;
    TapBufferHeader* header = buffer_.header();
    header->state.store(static_cast<uint32_t>(state), std::memory_order_release);
    header->state_changes.fetch_add(1, std::memory_order_release);
    facts_stale_ = true;
    ExplainState();
    Answer(TapResult::kNone, wanted_ ? spec_.capture_id : nullptr, detail_, now_ns);
  }
  if (facts_stale_ || facts_version_ != worker_facts_->version()) PublishFacts();
}

void Tap::ExplainState() {
  if (state_ == TapState::kRuntimeTooOld) {
    snprintf(detail_, sizeof detail_,
             "this libnrt.so.1 lacks nrt_sys_trace_fetch_events or what belongs to it: Neuron SDK "
             "2.22 or later is needed");
  } else if (state_ == TapState::kBusyOtherProfiler && refusal_ == Refusal::kNone) {
    snprintf(detail_, sizeof detail_,
             "the application profiles itself (nrt_sys_trace_start, nrt_inspect_begin or "
             "NEURON_RT_INSPECT_ENABLE): waiting until it has ended that");
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
  // Where the application is about to close, or to profile, its call goes first.
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
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (header->consumer_waiting.exchange(0, std::memory_order_seq_cst) != 0) connection_.SendWake();
}

void Tap::GiveMemoryBack(uint64_t now_ns) {
  // A trace that holds writes nothing for as long as nobody asks.
  const bool holds = trace_.holds() && !trace_.collecting();
  if ((wanted_ || trace_.running()) && !holds) {
    give_back_at_ns_ = now_ns + kGiveBackFirstNs;
    give_back_pause_ns_ = kGiveBackFirstNs;
    return;
  }
  if (now_ns < give_back_at_ns_) return;
  if (ring_.empty()) {
    buffer_.ReleaseRingPages();
    give_back_at_ns_ = kNeverNs;
    return;
  }
  // The agent has yet to commit what it read.
  give_back_at_ns_ = now_ns + give_back_pause_ns_;
  give_back_pause_ns_ = Earlier(give_back_pause_ns_ * 2, kGiveBackMaxNs);
}

uint64_t Tap::NextDeadlineNs() const {
  uint64_t next = Earlier(connection_.RetryAtNs(), trace_.NextDueNs());
  if (quiet_until_ns_ != 0) next = Earlier(next, quiet_until_ns_);
  const bool holds = trace_.holds() && !trace_.collecting();
  if ((!wanted_ && !trace_.running()) || holds) next = Earlier(next, give_back_at_ns_);
  if (!wanted_) return next;
  next = Earlier(next, Earlier(stop_at_ns_, NextCollectionNs()));
  const bool may_start = view_.initialised && !view_.exiting && !view_.claimed &&
                         view_.profilers == 0 && library_->CanTrace();
  if (!trace_.running() && may_start) {
    next = Earlier(next, start_at_ns_ > begin_at_ns_ ? start_at_ns_ : begin_at_ns_);
  }
  if (!connection_.connected()) {
    next = Earlier(next, connection_.disconnected_since_ns() + kOrphanTimeoutNs);
  }
  return next;
}

}  // namespace neurontrace::tap
