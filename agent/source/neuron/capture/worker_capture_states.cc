// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/worker_capture_states.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace neurontrace {
namespace {

namespace worker_table {

using P = WorkerPhase;
using E = WorkerEvent;
using A = WorkerAction;

// One row for each pair of phase and event that has an effect, in the order of a capture's life.
// static_asserts below check that no pair has two rows and that every phase can end;
// docs/developer/worker_states.md shows the diagram.
constexpr auto kTransitions = std::to_array<WorkerTransition>({
    // Orders of the aggregator before the capture begins.
    {P::kJoined, E::kArm, P::kArming, A::kCheckObstacles},
    {P::kArming, E::kArm, P::kArming, A::kCheckObstacles},
    {P::kJoined, E::kBegin, P::kReady, A::kPlanBegin},
    {P::kArming, E::kBegin, P::kReady, A::kPlanBegin},
    {P::kJoined, E::kBeginSnapshot, P::kCutDue, A::kPlanCut},
    {P::kArming, E::kBeginSnapshot, P::kCutDue, A::kPlanCut},
    // What is sent to the tap.
    {P::kReady, E::kTurn, P::kReady, A::kSendStart},
    {P::kCannotStart, E::kTurn, P::kCannotStart, A::kSendStart},
    {P::kCutDue, E::kTurn, P::kCutDue, A::kSendCollect},
    {P::kStopping, E::kTurn, P::kStopping, A::kSendStop},
    {P::kReady, E::kStartImpossible, P::kCannotStart, A::kNone},
    {P::kCannotStart, E::kStartPossible, P::kReady, A::kNone},
    {P::kReady, E::kStartSent, P::kOrdered, A::kNone},
    {P::kOrdered, E::kStartNotSent, P::kReady, A::kNone},
    {P::kUnsupported, E::kStartNotSent, P::kCannotStart, A::kNone},
    {P::kCutDue, E::kCollectSent, P::kCollecting, A::kNone},
    // The tap's answers to START. One that names another capture reaches every capture of the
    // worker.
    {P::kJoined, E::kAnswerRecording, P::kJoined, A::kReportRecording},
    {P::kArming, E::kAnswerRecording, P::kArming, A::kReportRecording},
    {P::kReady, E::kAnswerRecording, P::kReady, A::kReportRecording},
    {P::kCannotStart, E::kAnswerRecording, P::kCannotStart, A::kReportRecording},
    {P::kOrdered, E::kAnswerRecording, P::kOrdered, A::kReportRecording},
    {P::kUnsupported, E::kAnswerRecording, P::kUnsupported, A::kReportRecording},
    {P::kSuspending, E::kAnswerRecording, P::kSuspending, A::kKeepRecorded},
    {P::kSuspended, E::kAnswerRecording, P::kSuspended, A::kKeepRecorded},
    {P::kSuspendStopSent, E::kAnswerRecording, P::kSuspendStopSent, A::kKeepRecorded},
    {P::kStopping, E::kAnswerRecording, P::kStopping, A::kKeepRecorded},
    {P::kStopSent, E::kAnswerRecording, P::kStopSent, A::kKeepRecorded},
    {P::kJoined, E::kAnswerWaiting, P::kJoined, A::kReportWaiting},
    {P::kArming, E::kAnswerWaiting, P::kArming, A::kReportWaiting},
    {P::kReady, E::kAnswerWaiting, P::kReady, A::kReportWaiting},
    {P::kCannotStart, E::kAnswerWaiting, P::kCannotStart, A::kReportWaiting},
    {P::kOrdered, E::kAnswerWaiting, P::kOrdered, A::kReportWaiting},
    {P::kUnsupported, E::kAnswerWaiting, P::kUnsupported, A::kReportWaiting},
    {P::kJoined, E::kAnswerOtherCapture, P::kJoined, A::kRetryLater},
    {P::kArming, E::kAnswerOtherCapture, P::kArming, A::kRetryLater},
    {P::kReady, E::kAnswerOtherCapture, P::kReady, A::kRetryLater},
    {P::kCannotStart, E::kAnswerOtherCapture, P::kCannotStart, A::kRetryLater},
    {P::kOrdered, E::kAnswerOtherCapture, P::kReady, A::kRetryLater},
    {P::kUnsupported, E::kAnswerOtherCapture, P::kCannotStart, A::kRetryLater},
    {P::kJoined, E::kAnswerUnsupported, P::kJoined, A::kReportObstacle},
    {P::kArming, E::kAnswerUnsupported, P::kArming, A::kReportObstacle},
    {P::kReady, E::kAnswerUnsupported, P::kCannotStart, A::kReportObstacle},
    {P::kCannotStart, E::kAnswerUnsupported, P::kCannotStart, A::kReportObstacle},
    {P::kOrdered, E::kAnswerUnsupported, P::kUnsupported, A::kReportObstacle},
    {P::kUnsupported, E::kAnswerUnsupported, P::kUnsupported, A::kReportObstacle},
    {P::kJoined, E::kAnswerRefused, P::kJoined, A::kReportObstacle},
    {P::kArming, E::kAnswerRefused, P::kArming, A::kReportObstacle},
    {P::kReady, E::kAnswerRefused, P::kReady, A::kReportObstacle},
    {P::kCannotStart, E::kAnswerRefused, P::kCannotStart, A::kReportObstacle},
    {P::kOrdered, E::kAnswerRefused, P::kOrdered, A::kReportObstacle},
    {P::kUnsupported, E::kAnswerRefused, P::kUnsupported, A::kReportObstacle},
    // What the tap shows without being asked.
    {P::kArming, E::kTapStateChanged, P::kArming, A::kCheckObstacles},
    {P::kOrdered, E::kTapStateChanged, P::kOrdered, A::kReportTapState},
    {P::kUnsupported, E::kTapStateChanged, P::kUnsupported, A::kReportTapState},
    {P::kJoined, E::kTraceSeen, P::kJoined, A::kReportRecording},
    {P::kArming, E::kTraceSeen, P::kArming, A::kReportRecording},
    {P::kReady, E::kTraceSeen, P::kReady, A::kReportRecording},
    {P::kCannotStart, E::kTraceSeen, P::kCannotStart, A::kReportRecording},
    {P::kOrdered, E::kTraceSeen, P::kOrdered, A::kReportRecording},
    {P::kUnsupported, E::kTraceSeen, P::kUnsupported, A::kReportRecording},
    {P::kCutDue, E::kTraceSeen, P::kCutDue, A::kReportRecording},
    {P::kCollecting, E::kTraceSeen, P::kCollecting, A::kReportRecording},
    // A standing capture is suspended for another one, until that is over.
    {P::kReady, E::kSuspend, P::kSuspended, A::kSuspend},
    {P::kCannotStart, E::kSuspend, P::kSuspended, A::kSuspend},
    {P::kOrdered, E::kSuspend, P::kSuspending, A::kSuspend},
    {P::kUnsupported, E::kSuspend, P::kSuspending, A::kSuspend},
    {P::kSuspending, E::kSuspend, P::kSuspending, A::kUpdateSuspension},
    {P::kSuspended, E::kSuspend, P::kSuspended, A::kUpdateSuspension},
    {P::kSuspendStopSent, E::kSuspend, P::kSuspendStopSent, A::kUpdateSuspension},
    {P::kSuspending, E::kSuspendStopSent, P::kSuspendStopSent, A::kNone},
    {P::kSuspended, E::kSuspendStopSent, P::kSuspendStopSent, A::kNone},
    {P::kSuspending, E::kEndSuspension, P::kReady, A::kReportStarting},
    {P::kSuspended, E::kEndSuspension, P::kReady, A::kReportStarting},
    {P::kSuspendStopSent, E::kEndSuspension, P::kReady, A::kReportStarting},
    // The end. A snapshot that was begun ends by itself, and soon.
    {P::kJoined, E::kStop, P::kStopping, A::kBeginStop},
    {P::kArming, E::kStop, P::kStopping, A::kBeginStop},
    {P::kReady, E::kStop, P::kStopping, A::kBeginStop},
    {P::kCannotStart, E::kStop, P::kStopping, A::kBeginStop},
    {P::kOrdered, E::kStop, P::kStopping, A::kBeginStop},
    {P::kUnsupported, E::kStop, P::kStopping, A::kBeginStop},
    {P::kSuspending, E::kStop, P::kStopping, A::kBeginStop},
    {P::kSuspended, E::kStop, P::kStopping, A::kBeginStop},
    {P::kSuspendStopSent, E::kStop, P::kStopping, A::kBeginStop},
    {P::kStopping, E::kStop, P::kStopping, A::kSendStop},
    {P::kStopSent, E::kStop, P::kStopSent, A::kSendStop},
    {P::kStopping, E::kStopSent, P::kStopSent, A::kNone},
    // A new connection: the tap knows nothing of what the last one was for.
    {P::kArming, E::kReconnect, P::kArming, A::kCheckObstacles},
    {P::kOrdered, E::kReconnect, P::kReady, A::kNone},
    {P::kUnsupported, E::kReconnect, P::kCannotStart, A::kNone},
    {P::kSuspending, E::kReconnect, P::kSuspended, A::kNone},
    {P::kSuspendStopSent, E::kReconnect, P::kSuspended, A::kNone},
    {P::kCollecting, E::kReconnect, P::kCutDue, A::kNone},
    {P::kStopping, E::kReconnect, P::kStopping, A::kSendStop},
    {P::kStopSent, E::kReconnect, P::kStopping, A::kSendStop},
    // From every phase.
    {P::kJoined, E::kEnd, P::kEnded, A::kEndStreams},
    {P::kArming, E::kEnd, P::kEnded, A::kEndStreams},
    {P::kReady, E::kEnd, P::kEnded, A::kEndStreams},
    {P::kCannotStart, E::kEnd, P::kEnded, A::kEndStreams},
    {P::kOrdered, E::kEnd, P::kEnded, A::kEndStreams},
    {P::kUnsupported, E::kEnd, P::kEnded, A::kEndStreams},
    {P::kSuspending, E::kEnd, P::kEnded, A::kEndStreams},
    {P::kSuspended, E::kEnd, P::kEnded, A::kEndStreams},
    {P::kSuspendStopSent, E::kEnd, P::kEnded, A::kEndStreams},
    {P::kCutDue, E::kEnd, P::kEnded, A::kEndStreams},
    {P::kCollecting, E::kEnd, P::kEnded, A::kEndStreams},
    {P::kStopping, E::kEnd, P::kEnded, A::kEndStreams},
    {P::kStopSent, E::kEnd, P::kEnded, A::kEndStreams},
});

}  // namespace worker_table

using worker_table::kTransitions;

// A trace that was seen stays seen: no row leads back to kUnseen.
constexpr auto kTraceTransitions = std::to_array<TraceTransition>({
    {TraceState::kUnseen, TraceSign::kRuns, TraceState::kRunning},
    {TraceState::kUnseen, TraceSign::kHasRun, TraceState::kStopped},
    {TraceState::kRunning, TraceSign::kStops, TraceState::kStopped},
    {TraceState::kStopped, TraceSign::kRuns, TraceState::kRunning},
});

// In the order of the enumerators, as in the diagram of docs/developer/worker_states.md.
constexpr std::array<std::string_view, kWorkerPhases> kPhaseNames = {
    "Joined",     "Arming",    "Ready",           "CannotStart", "Ordered",    "Unsupported",
    "Suspending", "Suspended", "SuspendStopSent", "CutDue",      "Collecting", "Stopping",
    "StopSent",   "Ended"};

// Returns whether no pair has two rows; FindTransition would never find the second one.
constexpr bool HasUniqueTransitions() {
  for (size_t i = 0; i < kTransitions.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (kTransitions[i].from == kTransitions[j].from &&
          kTransitions[i].event == kTransitions[j].event) {
        return false;
      }
    }
  }
  return true;
}
static_assert(HasUniqueTransitions(), "two rows for one pair of phase and event");

// Returns whether every phase but kEnded ends, and nothing leaves kEnded.
constexpr bool EndsFromEveryPhase() {
  size_t ends = 0;
  for (const WorkerTransition& row : kTransitions) {
    if (row.from == WorkerPhase::kEnded) return false;
    if ((row.event == WorkerEvent::kEnd) != (row.to == WorkerPhase::kEnded)) return false;
    ends += row.event == WorkerEvent::kEnd ? 1 : 0;
  }
  return ends == kWorkerPhases - 1;
}
static_assert(EndsFromEveryPhase(), "a phase that does not end, or a row from kEnded");
static_assert(static_cast<size_t>(WorkerPhase::kEnded) + 1 == kWorkerPhases);
static_assert(static_cast<size_t>(WorkerEvent::kEnd) + 1 == kWorkerEvents);
static_assert(static_cast<size_t>(WorkerAction::kEndStreams) + 1 == kWorkerActions);

}  // namespace

std::span<const WorkerTransition> WorkerTransitions() { return kTransitions; }

// A linear search: the table has about a hundred rows and is searched a few times for each message.
WorkerTransition FindTransition(WorkerPhase from, WorkerEvent event) {
  const auto found = std::find_if(kTransitions.begin(), kTransitions.end(), [&](const auto& row) {
    return row.from == from && row.event == event;
  });
  if (found == kTransitions.end()) return {from, event, from, WorkerAction::kNone};
  return *found;
}

std::span<const TraceTransition> TraceTransitions() { return kTraceTransitions; }

TraceState NextTraceState(TraceState from, TraceSign sign) {
  const auto found =
      std::find_if(kTraceTransitions.begin(), kTraceTransitions.end(),
                   [&](const auto& row) { return row.from == from && row.sign == sign; });
  return found == kTraceTransitions.end() ? from : found->to;
}

std::string_view ToString(WorkerPhase phase) {
  const auto index = static_cast<size_t>(phase);
  assert(index < kPhaseNames.size() && !kPhaseNames[index].empty());
  return kPhaseNames[index];
}

}  // namespace neurontrace
