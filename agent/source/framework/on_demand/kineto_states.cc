// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/on_demand/kineto_states.h"

namespace neurontrace {
namespace {

constexpr KinetoTransition kTransitions[] = {
    {KinetoState::kUnknown, KinetoEvent::kReadyPoll, KinetoState::kPolling},
    {KinetoState::kUnknown, KinetoEvent::kOccupiedPoll, KinetoState::kOccupied},
    {KinetoState::kUnknown, KinetoEvent::kMomentPassed, KinetoState::kNotListening},
    {KinetoState::kPolling, KinetoEvent::kOccupiedPoll, KinetoState::kOccupied},
    {KinetoState::kPolling, KinetoEvent::kOrderSent, KinetoState::kArmed},
    {KinetoState::kPolling, KinetoEvent::kMomentPassed, KinetoState::kTooLate},
    {KinetoState::kOccupied, KinetoEvent::kReadyPoll, KinetoState::kPolling},
    {KinetoState::kOccupied, KinetoEvent::kMomentPassed, KinetoState::kBusy},
    {KinetoState::kArmed, KinetoEvent::kOrderFailed, KinetoState::kPolling},
    {KinetoState::kArmed, KinetoEvent::kOccupiedPoll, KinetoState::kRecording},
    {KinetoState::kArmed, KinetoEvent::kSilent, KinetoState::kGone},
    {KinetoState::kArmed, KinetoEvent::kDeadlinePassed, KinetoState::kNotSeen},
    {KinetoState::kRecording, KinetoEvent::kSilent, KinetoState::kGone},
    {KinetoState::kRecording, KinetoEvent::kDeadlinePassed, KinetoState::kNotSeen},
    // A file is a file, whatever was expected of its worker.
    {KinetoState::kUnknown, KinetoEvent::kFileAppeared, KinetoState::kFileSeen},
    {KinetoState::kPolling, KinetoEvent::kFileAppeared, KinetoState::kFileSeen},
    {KinetoState::kOccupied, KinetoEvent::kFileAppeared, KinetoState::kFileSeen},
    {KinetoState::kArmed, KinetoEvent::kFileAppeared, KinetoState::kFileSeen},
    {KinetoState::kRecording, KinetoEvent::kFileAppeared, KinetoState::kFileSeen},
    {KinetoState::kNotSeen, KinetoEvent::kFileAppeared, KinetoState::kFileSeen},
    {KinetoState::kGone, KinetoEvent::kFileAppeared, KinetoState::kFileSeen},
    {KinetoState::kBusy, KinetoEvent::kFileAppeared, KinetoState::kFileSeen},
    {KinetoState::kTooLate, KinetoEvent::kFileAppeared, KinetoState::kFileSeen},
    {KinetoState::kNotListening, KinetoEvent::kFileAppeared, KinetoState::kFileSeen},
};

}  // namespace

std::span<const KinetoTransition> KinetoTransitions() { return kTransitions; }

KinetoState NextState(KinetoState state, KinetoEvent event) {
  for (const KinetoTransition& row : kTransitions) {
    if (row.from == state && row.event == event) return row.to;
  }
  return state;
}

FrameworkTraceState ReportedState(KinetoState state) {
  switch (state) {
    case KinetoState::kUnknown:
    case KinetoState::kPolling:
    case KinetoState::kOccupied:
      return FrameworkTraceState::kWaiting;
    case KinetoState::kArmed:
      return FrameworkTraceState::kAsked;
    case KinetoState::kRecording:
      return FrameworkTraceState::kRecording;
    case KinetoState::kFileSeen:
      return FrameworkTraceState::kFileSeen;
    case KinetoState::kNotSeen:
    case KinetoState::kGone:
      return FrameworkTraceState::kNotSeen;
    case KinetoState::kBusy:
      return FrameworkTraceState::kBusy;
    case KinetoState::kTooLate:
      return FrameworkTraceState::kTooLate;
    case KinetoState::kNotListening:
      return FrameworkTraceState::kNotListening;
  }
  return FrameworkTraceState::kUnspecified;
}

}  // namespace neurontrace
