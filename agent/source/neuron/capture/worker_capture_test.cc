// SPDX-License-Identifier: Apache-2.0
// Goal: WorkerCapture follows its table, and no order of calls leaves it stuck. Method: its own
// calls, with a real connection to a fake tap; the events that a call stands for are folded over
// the table and compared with the phase.
#include "agent/source/neuron/capture/worker_capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/source/neuron/capture/held_rings.h"
#include "agent/source/neuron/tap/fake_tap.h"
#include "agent/source/recording_sink.h"
#include "lib/base/fake_task_runner.h"
#include "lib/base/random.h"
#include "lib/base/sanitizers.h"

namespace neurontrace {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

enum class Call {
  kArm,
  kBegin,
  kTurn,
  kTurnWithoutTypes,
  kTurnHungUp,
  kAnswerOk,
  kAnswerAccepted,
  kAnswerOther,
  kAnswerUnsupported,
  kAnswerRefused,
  kStateChanged,
  kTraceStarted,
  kSuspend,
  kSuspendHungUp,
  kEndSuspension,
  kStop,
  kStopHungUp,
  kReconnect,
  kGone,
};
constexpr int kCalls = static_cast<int>(Call::kGone) + 1;

class LastStatus final : public SourceListener {
 public:
  void OnWorker(const WorkerInfo&) override {}
  void OnWorkerGone(const WorkerIdentity&) override {}
  void OnCaptureWorker(const CaptureWorkerStatus& status) override { last = status; }
  CaptureWorkerStatus last;
};

class NoTapListener final : public TapSession::Listener {
 public:
  absl::Status OnGreeting(TapSession&, TapGreeting) override { return absl::OkStatus(); }
  void OnReport(TapSession&, const TapReport&) override {}
  void OnClosed(TapSession&, const absl::Status&) override {}
};

CaptureId IdOf(char c) { return *CaptureId::FromBytes(std::string(16, c)); }

// One part in one capture, with a tap that can be sent to and one that cannot.
class Part {
 public:
  explicit Part(CaptureMode mode) {
    plan_.id = IdOf('c');
    plan_.spec.mode = mode;
    plan_.spec.timing.flight_recorder = IdOf('r');
    plan_.spec.filter.event_types = {"nrt_execute"};
    plan_.filter = *EventFilter::Parse(plan_.spec.filter.event_types);
    facts_.runtime_known = strange_facts_.runtime_known = true;
    facts_.event_types = {"nrt_execute"};
    strange_facts_.event_types = {"cc_running"};
    hung_up_tap_.HangUp();
    Make();
  }

  bool is_snapshot() const { return plan_.spec.mode == CaptureMode::kSnapshot; }
  WorkerCapture& capture() { return *capture_; }
  const CaptureWorkerStatus& status() const { return listener_.last; }

  // As an agent that starts again does: the streams continue where the store has them.
  void Restart(bool records_it) {
    capture_.reset();
    Make();
    capture_->Resume(sink_.Cursors());
    if (records_it) capture_->OnRunning();
    capture_->Confirm();
  }

  void Do(Call call) {
    while (tap_.ReadCommand()) {
    }
    switch (call) {
      case Call::kArm:
        return capture_->Arm(View());
      case Call::kBegin:
        return capture_->Begin(PlanMoment(0, Now()), false, rings_);
      case Call::kTurn:
        clock_.AdvanceNs(kSecondNs);
        return capture_->TryStart(View());
      case Call::kTurnWithoutTypes:
        clock_.AdvanceNs(kSecondNs);
        return capture_->TryStart(View(&session_, &strange_facts_));
      case Call::kTurnHungUp:
        clock_.AdvanceNs(kSecondNs);
        return capture_->TryStart(View(&hung_up_));
      case Call::kAnswerOk:
        return capture_->OnStartAnswer(Report(TapResult::kOk));
      case Call::kAnswerAccepted:
        return capture_->OnStartAnswer(Report(TapResult::kAccepted));
      case Call::kAnswerOther:
        return capture_->OnStartAnswer(Report(TapResult::kAnotherCapture));
      case Call::kAnswerUnsupported:
        return capture_->OnStartAnswer(Report(TapResult::kUnsupported));
      case Call::kAnswerRefused:
        return capture_->OnStartAnswer(Report(TapResult::kTooFarAhead));
      case Call::kStateChanged:
        return capture_->OnStateChange(Report(TapResult::kNone), View());
      case Call::kTraceStarted:
        return capture_->OnTraceStarted(Record(trace_started_), facts_);
      case Call::kSuspend:
        return capture_->Suspend(View(), IdOf('o'));
      case Call::kSuspendHungUp:
        return capture_->Suspend(View(&hung_up_), IdOf('o'));
      case Call::kEndSuspension:
        return capture_->EndSuspension();
      case Call::kStop:
        return capture_->Stop(&session_);
      case Call::kStopHungUp:
        return capture_->Stop(nullptr);
      case Call::kReconnect:
        return capture_->Reconnect(View());
      case Call::kGone:
        return capture_->EndWithWorker(0, false);
    }
  }
  // Does what a tap may also send or write, at any time.
  void RunStep(uint64_t choice) {
    const uint64_t next = next_position_;
    switch (choice % 7) {
      case 0:
        return capture_->OnDocument();
      case 1:
        stopped_.reason = 1 + static_cast<uint32_t>(choice / 7 % 7);
        return capture_->OnTraceStopped(Record(stopped_));
      case 2:
        return capture_->OnStopAnswer(next);
      case 3:
        return capture_->OnCollectAnswer(
            Report(choice % 2 == 0 ? TapResult::kOk : TapResult::kAccepted), next);
      case 4:
        return capture_->OnCollectAnswer(Report(TapResult::kAnotherCapture), next);
      case 5:
        return Pass(choice % (20 * kSecondNs));
      default:
        return capture_->EndBecauseBroken(next, "nonsense");
    }
  }
  void Pass(uint64_t ns) {
    clock_.AdvanceNs(ns);
    capture_->Tick(next_position_, true);
    sink_.StoreAll();
    capture_->Tick(next_position_, true);
  }

  // The events that a call stands for, in a phase.
  std::vector<WorkerEvent> EventsOf(Call call) const {
    using E = WorkerEvent;
    const WorkerPhase phase = capture_->phase();
    const auto action = [phase](E event) { return FindTransition(phase, event).action; };
    switch (call) {
      case Call::kArm:
        return {E::kArm};
      case Call::kBegin:
        return {is_snapshot() ? E::kBeginSnapshot : E::kBegin};
      case Call::kTurn:
      case Call::kTurnHungUp:
      case Call::kTurnWithoutTypes:
        return TurnEvents(call, action(E::kTurn));
      case Call::kAnswerOk:
        return {E::kAnswerRecording};
      case Call::kAnswerAccepted:
        return {E::kAnswerWaiting};
      case Call::kAnswerOther:
        return {E::kAnswerOtherCapture};
      case Call::kAnswerUnsupported:
        return {E::kAnswerUnsupported};
      case Call::kAnswerRefused:
        return {E::kAnswerRefused};
      case Call::kStateChanged:
        return {E::kTapStateChanged, action(E::kTapStateChanged) == WorkerAction::kCheckObstacles
                                         ? E::kArm
                                         : E::kTraceSeen};
      case Call::kTraceStarted:
        return {E::kTraceSeen};
      case Call::kSuspend: {
        const bool acts = action(E::kSuspend) != WorkerAction::kNone;
        return acts ? std::vector{E::kSuspend, E::kSuspendStopSent} : std::vector{E::kSuspend};
      }
      case Call::kSuspendHungUp:
        return {E::kSuspend};
      case Call::kEndSuspension:
        return {E::kEndSuspension};
      case Call::kStop:
        return {E::kStop, E::kStopSent};
      case Call::kStopHungUp:
        return {E::kStop};
      case Call::kReconnect:
        if (action(E::kReconnect) == WorkerAction::kNone) return {E::kReconnect};
        if (phase == WorkerPhase::kArming) return {E::kReconnect, E::kArm};
        return {E::kReconnect, E::kStop, E::kStopSent};
      case Call::kGone:
        return {E::kEnd};
    }
    return {};
  }

 private:
  static std::vector<WorkerEvent> TurnEvents(Call call, WorkerAction action) {
    using E = WorkerEvent;
    switch (action) {
      case WorkerAction::kSendStart:
        if (call == Call::kTurnWithoutTypes) return {E::kTurn, E::kStartImpossible};
        if (call == Call::kTurnHungUp) return {E::kTurn, E::kStartPossible};
        return {E::kTurn, E::kStartPossible, E::kStartSent};
      case WorkerAction::kSendCollect:
        if (call == Call::kTurnHungUp) return {E::kTurn};
        return {E::kTurn, E::kCollectSent};
      case WorkerAction::kSendStop:
        return {E::kTurn, E::kStop, E::kStopSent};
      default:
        return {E::kTurn};
    }
  }
  void Make() {
    capture_ = std::make_unique<WorkerCapture>(streams_, listener_, plan_, WorkerIdentity{});
    capture_->Confirm();
  }
  HostInstant Now() const {
    return {clock_.MonotonicNs(), clock_.MonotonicNs(), clock_.RealtimeNs()};
  }
  TapView View(TapSession* session = nullptr, const WorkerFacts* facts = nullptr) {
    return {.session = session == nullptr ? &session_ : session,
            .state = is_snapshot() ? TapState::kHolding : TapState::kIdle,
            .running = is_snapshot() ? plan_.spec.timing.flight_recorder : plan_.id,
            .facts = facts == nullptr ? facts_ : *facts};
  }
  TapReport Report(TapResult result) const {
    const bool holds = plan_.spec.mode == CaptureMode::kFlightRecorder;
    return {.state = holds ? TapState::kHolding : TapState::kStreaming,
            .result = result,
            .capture_id = plan_.id};
  }
  template <typename Payload>
  TapRecord Record(Payload& payload) {
    const uint64_t position = next_position_;
    next_position_ += 64;
    return {.position = position,
            .next_position = next_position_,
            .host_realtime_ns = clock_.RealtimeNs(),
            .capture_id = plan_.id,
            .payload = reinterpret_cast<char*>(&payload),
            .payload_bytes = sizeof payload};
  }
  PeerFd SocketOf(FakeTap& tap) { return PeerFd(tap.Connect(), closer_); }

  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  RecordingSink sink_;
  AgentSourceMetrics metrics_;
  LastStatus listener_;
  NoTapListener tap_listener_;
  PeerCloser closer_{0};
  FakeTap tap_;
  FakeTap hung_up_tap_;
  TapSession session_{SocketOf(tap_), closer_, runner_, clock_, tap_listener_};
  TapSession hung_up_{SocketOf(hung_up_tap_), closer_, runner_, clock_, tap_listener_};
  const StreamSetup streams_{"agent", clock_, sink_, metrics_};
  HeldRings rings_;
  CapturePlan plan_;
  WorkerFacts facts_;
  WorkerFacts strange_facts_;
  TapTraceStarted trace_started_ = {};
  TapTraceStopped stopped_ = {};
  uint64_t next_position_ = 64;
  std::unique_ptr<WorkerCapture> capture_;
};

bool IsAnswer(Call call) { return call >= Call::kAnswerOk && call <= Call::kAnswerRefused; }

// The calls that lead to a phase from the first; of a snapshot if `is_snapshot`.
std::optional<std::vector<Call>> PathTo(WorkerPhase phase, bool is_snapshot) {
  using P = WorkerPhase;
  const std::vector<Call> ordered = {Call::kBegin, Call::kTurn};
  const auto then = [&](Call call) {
    std::vector<Call> calls = ordered;
    calls.push_back(call);
    return calls;
  };
  switch (phase) {
    case P::kJoined:
      return std::vector<Call>{};
    case P::kArming:
      return std::vector{Call::kArm};
    case P::kStopping:
      return std::vector{Call::kStopHungUp};
    case P::kStopSent:
      return std::vector{Call::kStop};
    case P::kEnded:
      return std::vector{Call::kGone};
    case P::kCutDue:
      return is_snapshot ? std::optional(std::vector{Call::kBegin}) : std::nullopt;
    case P::kCollecting:
      return is_snapshot ? std::optional(ordered) : std::nullopt;
    default:
      break;
  }
  if (is_snapshot) return std::nullopt;
  switch (phase) {
    case P::kReady:
      return std::vector{Call::kBegin};
    case P::kCannotStart:
      return std::vector{Call::kBegin, Call::kTurnWithoutTypes};
    case P::kUnsupported:
      return then(Call::kAnswerUnsupported);
    case P::kSuspending:
      return then(Call::kSuspendHungUp);
    case P::kSuspended:
      return std::vector{Call::kBegin, Call::kSuspendHungUp};
    case P::kSuspendStopSent:
      return then(Call::kSuspend);
    default:
      return ordered;
  }
}

TEST(WorkerCaptureTest, FollowsEveryRowOfTheTable) {
  std::set<std::pair<WorkerPhase, WorkerEvent>> walked;
  for (const CaptureMode mode : {CaptureMode::kContinuous, CaptureMode::kSnapshot}) {
    for (size_t i = 0; i < kWorkerPhases; ++i) {
      const auto phase = static_cast<WorkerPhase>(i);
      const auto way = PathTo(phase, mode == CaptureMode::kSnapshot);
      if (!way) continue;
      for (int c = 0; c < kCalls; ++c) {
        const auto call = static_cast<Call>(c);
        Part part(mode);
        if (part.is_snapshot() && IsAnswer(call)) continue;
        for (const Call step : *way) part.Do(step);
        ASSERT_EQ(part.capture().phase(), phase) << ToString(part.capture().phase());
        WorkerPhase expected = phase;
        for (const WorkerEvent event : part.EventsOf(call)) {
          walked.emplace(expected, event);
          expected = FindTransition(expected, event).to;
        }
        part.Do(call);
        EXPECT_EQ(part.capture().phase(), expected)
            << "call " << c << " in " << ToString(phase) << " leads to "
            << ToString(part.capture().phase()) << ", not to " << ToString(expected);
      }
    }
  }
  for (const WorkerTransition& row : WorkerTransitions()) {
    // A connection that takes a STOP and not the START behind it cannot be made here.
    if (row.event == WorkerEvent::kStartNotSent) continue;
    EXPECT_TRUE(walked.contains({row.from, row.event}))
        << ToString(row.from) << ", event " << static_cast<int>(row.event);
  }
}

bool IsFinal(CaptureWorkerState state) {
  return state == CaptureWorkerState::kComplete || state == CaptureWorkerState::kRefused ||
         state == CaptureWorkerState::kLost;
}

TEST(WorkerCaptureTest, NoOrderOfCallsLeavesItStuck) {
  constexpr CaptureMode kModes[] = {CaptureMode::kStream, CaptureMode::kContinuous,
                                    CaptureMode::kFlightRecorder, CaptureMode::kSnapshot};
  for (uint64_t seed = 0; seed < (kUnderSanitizer ? 400 : 4'000); ++seed) {
    SeededRandom random(seed);
    Part part(kModes[seed % 4]);
    const uint64_t steps = 1 + random.Next64() % 30;
    bool stops = false;
    for (uint64_t step = 0; step < steps; ++step) {
      const uint64_t choice = random.Next64();
      // Few worlds end early: those in which much can still happen are of more interest.
      const auto call = static_cast<Call>(choice % static_cast<uint64_t>(kCalls));
      const bool ends = call >= Call::kStop && call != Call::kReconnect;
      if (choice % 5 == 0) {
        part.RunStep(choice / 8 % (choice % 11 == 0 ? 7 * kSecondNs : 6));
      } else if (choice % 17 == 0) {
        part.Restart(choice % 2 == 0);
        stops = false;
      } else if (!ends || choice % 7 == 0) {
        stops = stops || call == Call::kStop || call == Call::kStopHungUp;
        part.Do(call);
      }
    }
    // A tap that is there, and no other capture: it has its order, or cannot have one.
    part.Do(Call::kEndSuspension);
    part.Do(Call::kReconnect);
    part.Do(Call::kBegin);
    part.Do(Call::kTurn);
    const WorkerPhase phase = part.capture().phase();
    EXPECT_TRUE(HasOrder(phase) || (stops && IsStopping(phase)) || phase == WorkerPhase::kEnded ||
                (part.is_snapshot() && phase == WorkerPhase::kCutDue))
        << "seed " << seed << ": " << ToString(phase);
    // Whatever the tap does not say, it ends.
    part.Do(Call::kStopHungUp);
    for (int second = 0; second < 90; ++second) part.Pass(kSecondNs);
    EXPECT_TRUE(part.capture().finished()) << "seed " << seed << ": " << ToString(phase);
    EXPECT_TRUE(IsFinal(part.status().state))
        << "seed " << seed << ": state " << static_cast<int>(part.status().state) << " "
        << part.status().detail;
  }
}

}  // namespace
}  // namespace neurontrace
