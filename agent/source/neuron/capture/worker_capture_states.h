// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

// The state machine of WorkerCapture as tables, with every transition in one place where a test can
// check it. docs/developer/worker_states.md shows them; tools/generate_docs.py writes that page
// from the enumerators, their comments and the rows of worker_capture_states.cc. Values and pure
// functions.
namespace neurontrace {

// How far one worker's part in one capture has come. "Has its START" means on this connection.
enum class WorkerPhase : uint8_t {
  kJoined,           // The worker takes part; the capture was neither armed nor begun here.
  kArming,           // The agent reports whether the capture could begin on this worker.
  kReady,            // The capture is to begin; the tap has no START of it.
  kCannotStart,      // The capture is to begin, but no START can be made; retried each second.
  kOrdered,          // The tap has its START: it records, or waits for its time or for the runtime.
  kUnsupported,      // The tap has its START and answered that its runtime cannot record.
  kSuspending,       // Suspended for another capture; the tap has its START and was sent no STOP.
  kSuspended,        // Suspended for another capture; the tap has neither a START nor a STOP of it.
  kSuspendStopSent,  // Suspended for another capture; the tap was sent a STOP.
  kCutDue,           // A snapshot is to be cut; the tap has no COLLECT of it.
  kCollecting,       // A snapshot; the tap has its COLLECT.
  kStopping,         // The capture is to stop; the tap was sent no STOP on this connection.
  kStopSent,         // The capture is to stop; the tap was sent a STOP.
  kEnded,            // The streams of the worker have ended; nothing follows.
};
inline constexpr size_t kWorkerPhases = 14;

// What happens to a worker's part in a capture.
enum class WorkerEvent : uint8_t {
  kArm,                 // The aggregator arms the capture.
  kBegin,               // A capture other than a snapshot begins, now or at a named time.
  kBeginSnapshot,       // A snapshot is cut, now or at a named time.
  kTurn,                // The agent sends the tap what is due.
  kStartImpossible,     // No START can be made: it would select nothing that the runtime has.
  kStartPossible,       // A START was made.
  kStartSent,           // The START was sent.
  kStartNotSent,        // A START that renews a trace could not be sent.
  kCollectSent,         // The COLLECT was sent.
  kAnswerRecording,     // The tap answers START: it records.
  kAnswerWaiting,       // The tap answers START: it keeps the order and waits.
  kAnswerOtherCapture,  // The tap answers START: it records another capture.
  kAnswerUnsupported,   // The tap answers START: its runtime cannot record.
  kAnswerRefused,       // The tap answers START: anything else.
  kTapStateChanged,     // The tap reports a new state without being asked.
  kTraceSeen,           // A record shows that a trace of the capture runs.
  kSuspend,             // Another capture of a higher precedence needs the tap.
  kSuspendStopSent,     // The STOP that frees the tap for the other capture was sent.
  kEndSuspension,       // The other capture is over.
  kStop,                // The aggregator stops the capture.
  kStopSent,            // That STOP was sent.
  kReconnect,           // The tap is connected again.
  kEnd,                 // All was read, nothing follows, or the tap did not answer in time.
};
inline constexpr size_t kWorkerEvents = 23;

// What WorkerCapture does on a transition.
enum class WorkerAction : uint8_t {
  kNone,              // Nothing.
  kCheckObstacles,    // Reports armed, or refused with the obstacle.
  kPlanBegin,         // Keeps the time at which the capture begins.
  kPlanCut,           // Keeps the time of the cut and how long to wait for the tap.
  kSendStart,         // Sends a START if one can be made and it is time to.
  kSendCollect,       // Sends a COLLECT unless the cut is too long ago.
  kSendStop,          // Sends a STOP.
  kBeginStop,         // Reports stopping, sets the deadline, sends a STOP if the tap is connected.
  kReportRecording,   // Reports recording.
  kKeepRecorded,      // Keeps that something was recorded, and reports nothing.
  kReportWaiting,     // Reports armed, starting, or what keeps the tap from recording.
  kRetryLater,        // Reports the other capture; a START follows in a second.
  kReportObstacle,    // Reports the obstacle that the tap named.
  kReportTapState,    // Reports recording, waiting or an obstacle by the tap's new state.
  kSuspend,           // Reports suspended, starts the suspension, sends a STOP if one is owed.
  kUpdateSuspension,  // Reports for which capture, sends a STOP if one is owed.
  kReportStarting,    // Reports starting; a START follows at once.
  kEndStreams,        // Ends the streams.
};
inline constexpr size_t kWorkerActions = 18;

// One row of the table: in phase `from`, the event leads to `to` and the action is carried out.
struct WorkerTransition {
  WorkerPhase from;
  WorkerEvent event;
  WorkerPhase to;
  WorkerAction action;
};

// Every transition. A pair of phase and event without a row changes nothing and does nothing.
std::span<const WorkerTransition> WorkerTransitions();

// Returns the row of that pair, or one that stays in `from` with kNone.
WorkerTransition FindTransition(WorkerPhase from, WorkerEvent event);

// Whether a trace of the capture ran on the worker, as far as records and answers show.
enum class TraceState : uint8_t {
  kUnseen,   // None was seen.
  kRunning,  // One was seen to run, and not to stop.
  kStopped,  // One ran, and none is known to run now.
};
inline constexpr size_t kTraceStates = 3;

// Evidence about the trace.
enum class TraceSign : uint8_t {
  kRuns,    // A record, a cursor or the tap's state shows that a trace runs.
  kHasRun,  // The tap's answer says that it began; it may have been stopped since.
  kStops,   // A record shows the end of a trace.
};
inline constexpr size_t kTraceSigns = 3;

// One row of the table of trace states; every other pair changes nothing.
struct TraceTransition {
  TraceState from;
  TraceSign sign;
  TraceState to;
};
std::span<const TraceTransition> TraceTransitions();
// Returns where the sign leads; `from` for a pair without a row.
TraceState NextTraceState(TraceState from, TraceSign sign);

// Returns the enumerator's name without its k, as in the diagram.
std::string_view ToString(WorkerPhase phase);

// Returns whether the capture is suspended in the worker for another one.
constexpr bool IsSuspended(WorkerPhase phase) {
  return phase == WorkerPhase::kSuspending || phase == WorkerPhase::kSuspended ||
         phase == WorkerPhase::kSuspendStopSent;
}
// Returns whether the capture is to stop, and its streams have not ended.
constexpr bool IsStopping(WorkerPhase phase) {
  return phase == WorkerPhase::kStopping || phase == WorkerPhase::kStopSent;
}
// Returns whether the phase is of a snapshot whose time of the cut is known; it ends by itself.
constexpr bool IsCut(WorkerPhase phase) {
  return phase == WorkerPhase::kCutDue || phase == WorkerPhase::kCollecting;
}
// Returns whether the capture records or may still record.
constexpr bool IsActive(WorkerPhase phase) {
  return !IsSuspended(phase) && !IsStopping(phase) && phase != WorkerPhase::kEnded;
}
// Returns whether the tap has a START or a COLLECT of the capture.
constexpr bool HasOrder(WorkerPhase phase) {
  return phase == WorkerPhase::kOrdered || phase == WorkerPhase::kUnsupported ||
         phase == WorkerPhase::kSuspending || phase == WorkerPhase::kCollecting;
}
// Returns whether the runtime or the selection excludes the worker.
constexpr bool IsRuledOut(WorkerPhase phase) {
  return phase == WorkerPhase::kCannotStart || phase == WorkerPhase::kUnsupported;
}

}  // namespace neurontrace
