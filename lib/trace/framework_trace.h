// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/trace/ids.h"

namespace neurontrace {

// jax and torch_xla, by the ProfilerService of XLA that both of them start.
inline constexpr std::string_view kXlaFramework = "xla";
// The variable with which a process names the port that it gave to start_server.
inline constexpr const char* kXlaPortVariable = "NEURONTRACE_XLA_PORT";
// Returns whether the mappings of a process, as in /proc/PID/maps, have a library of jax or
// torch_xla. Pure.
constexpr bool HasXla(std::string_view mappings) {
  return mappings.find("/jaxlib/") != mappings.npos || mappings.find("/_XLAC") != mappings.npos;
}

// Returns whether the mappings have a library of PyTorch. Pure.
constexpr bool HasPyTorch(std::string_view mappings) {
  return mappings.find("/libtorch_cpu.") != mappings.npos;
}

// The frameworks that can be asked to record on demand, as CaptureSpec::Filter::frameworks and
// `capture --framework` name them.
inline constexpr std::array<std::string_view, 2> kOnDemandFrameworks = {"pytorch", kXlaFramework};

constexpr bool IsOnDemandFramework(std::string_view name) {
  return std::find(kOnDemandFrameworks.begin(), kOnDemandFrameworks.end(), name) !=
         kOnDemandFrameworks.end();
}

// Returns whether the mappings of a process have a library of one of kOnDemandFrameworks. Pure.
constexpr bool HasFramework(std::string_view framework, std::string_view mappings) {
  return framework == kXlaFramework ? HasXla(mappings) : HasPyTorch(mappings);
}

// How far the trace of one framework in one worker has come. Values are on the wire and equal those
// of neurontrace.v1: never change one.
enum class FrameworkTraceState : uint8_t {
  kUnspecified = 0,
  kWaiting = 1,       // the worker has not asked for orders since the capture was planned
  kAsked = 2,         // it has received the order
  kRecording = 3,     // it has confirmed the order, or answered it
  kFileSeen = 4,      // its trace file is in the framework directory
  kBusy = 5,          // its profiler was in use, for instance by the program itself
  kTooLate = 6,       // it could not receive the order before the planned moment
  kNotListening = 7,  // it has never asked this agent for orders, or cannot be called
  kNotSeen = 8,       // it was asked, and no trace file appeared
  kFailed = 9,        // the order could not be given; `detail` explains it
};

// Returns whether the state no longer changes.
constexpr bool IsFinal(FrameworkTraceState state) {
  return state >= FrameworkTraceState::kFileSeen;
}

// Returns a state as text for tables and messages. A value of a later version is "not known".
constexpr std::string_view ToString(FrameworkTraceState state) {
  switch (state) {
    case FrameworkTraceState::kUnspecified:
      break;
    case FrameworkTraceState::kWaiting:
      return "waiting";
    case FrameworkTraceState::kAsked:
      return "asked";
    case FrameworkTraceState::kRecording:
      return "recording";
    case FrameworkTraceState::kFileSeen:
      return "file seen";
    case FrameworkTraceState::kBusy:
      return "busy";
    case FrameworkTraceState::kTooLate:
      return "too late";
    case FrameworkTraceState::kNotListening:
      return "not listening";
    case FrameworkTraceState::kNotSeen:
      return "not seen";
    case FrameworkTraceState::kFailed:
      return "failed";
  }
  return "not known";
}

// The outcome of one worker and one framework in a capture with CaptureSpec::Filter::frameworks:
// the fields of neurontrace.v1.FrameworkTrace. A plain value.
struct FrameworkTrace {
  WorkerIdentity worker;
  std::string framework;
  FrameworkTraceState state = FrameworkTraceState::kUnspecified;
  std::string detail;  // for people; empty: the state says everything
  friend bool operator==(const FrameworkTrace&, const FrameworkTrace&) = default;
};

}  // namespace neurontrace
