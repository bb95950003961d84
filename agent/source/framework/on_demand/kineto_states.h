// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "lib/trace/framework_trace.h"

namespace neurontrace {

// The states of one worker's trace in one capture, as the agent sees them through Kineto's
// protocol, in which a worker acknowledges nothing: that it no longer takes orders is the only sign
// that it has taken one.
enum class KinetoState : uint8_t {
  kUnknown,    // it has not asked yet
  kPolling,    // it asks, and would take an order
  kOccupied,   // it asks, and its profiler is in use
  kArmed,      // it has been given the order
  kRecording,  // it no longer takes orders
  // What follows changes only if a file appears after all.
  kFileSeen,
  kNotSeen,       // asked, and no file appeared in time
  kGone,          // asked, and it stopped asking
  kBusy,          // occupied until the moment
  kTooLate,       // it asked, but not between the order and the moment
  kNotListening,  // it never asked
};

enum class KinetoEvent : uint8_t {
  kReadyPoll,       // it asks, and would take an order
  kOccupiedPoll,    // it asks, and its profiler is in use
  kOrderSent,       // it has been answered with the order
  kOrderFailed,     // it was, and the answer was not delivered
  kMomentPassed,    // nobody else is asked
  kSilent,          // it has not asked for limits::kKinetoSilenceNs
  kFileAppeared,    // in the framework directory, with its name
  kDeadlinePassed,  // files are no longer waited for
};

// One row of the table of transitions.
struct KinetoTransition {
  KinetoState from;
  KinetoEvent event;
  KinetoState to;
};
// Returns the table, which docs/operator/framework_on_demand.md shows; what is not in it changes
// nothing. Each state and event is in it at most once.
std::span<const KinetoTransition> KinetoTransitions();

// Returns the state after the event. Pure, as is the function below.
KinetoState NextState(KinetoState state, KinetoEvent event);

// Returns what is reported of a worker in this state.
FrameworkTraceState ReportedState(KinetoState state);

}  // namespace neurontrace
