// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/on_demand/kineto_states.h"

namespace neurontrace {
namespace {

using State = KinetoState;
using Event = KinetoEvent;

constexpr KinetoTransition kTransitions[] = {
    {State::kUnknown, Event::kReadyPoll, State::kPolling},
    {State::kUnknown, Event::kOccupiedPoll, State::kOccupied},
    {State::kUnknown, Event::kMomentPassed, State::kNotListening},
    {State::kPolling, Event::kOccupiedPoll, State::kOccupied},
    {State::kPolling, Event::kOrderSent, State::kArmed},
    {State::kPolling, Event::kMomentPassed, State::kTooLate},
    {State::kOccupied, Event::kReadyPoll, State::kPolling},
    {State::kOccupied, Event::kMomentPassed, State::kBusy},
    {State::kArmed, Event::kOrderFailed, State::kPolling},
    {State::kArmed, Event::kOccupiedPoll, State::kRecording},
    {State::kArmed, Event::kSilent, State::kGone},
    {State::kArmed, Event::kDeadlinePassed, State::kNotSeen},
    {State::kRecording, Event::kSilent, State::kGone},
    {State::kRecording, Event::kDeadlinePassed, State::kNotSeen},
    // A file is a file, whatever was expected of its worker.
    {State::kUnknown, Event::kFileAppeared, State::kFileSeen},
    {State::kPolling, Event::kFileAppeared, State::kFileSeen},
    {State::kOccupied, Event::kFileAppeared, State::kFileSeen},
    {State::kArmed, Event::kFileAppeared, State::kFileSeen},
    {State::kRecording, Event::kFileAppeared, State::kFileSeen},
    {State::kNotSeen, Event::kFileAppeared, State::kFileSeen},
    {State::kGone, Event::kFileAppeared, State::kFileSeen},
    {State::kBusy, Event::kFileAppeared, State::kFileSeen},
    {State::kTooLate, Event::kFileAppeared, State::kFileSeen},
    {State::kNotListening, Event::kFileAppeared, State::kFileSeen},
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
    case State::kUnknown:
    case State::kPolling:
    case State::kOccupied:
      return FrameworkTraceState::kWaiting;
    case State::kArmed:
      return FrameworkTraceState::kAsked;
    case State::kRecording:
      return FrameworkTraceState::kRecording;
    case State::kFileSeen:
      return FrameworkTraceState::kFileSeen;
    case State::kNotSeen:
    case State::kGone:
      return FrameworkTraceState::kNotSeen;
    case State::kBusy:
      return FrameworkTraceState::kBusy;
    case State::kTooLate:
      return FrameworkTraceState::kTooLate;
    case State::kNotListening:
      return FrameworkTraceState::kNotListening;
  }
  return FrameworkTraceState::kUnspecified;
}

}  // namespace neurontrace
