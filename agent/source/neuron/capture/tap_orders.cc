// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/tap_orders.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/source/neuron/capture/fidelity_levels.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Returns the size of the names in a START, each with its NUL.
size_t NameBytes(const std::vector<std::string>& names) {
  size_t bytes = 0;
  for (const std::string& name : names) bytes += name.size() + 1;
  return bytes;
}

// The limits of tap/agent_protocol.h; a list that exceeds them is not sent at all.
bool MatchesStart(const std::vector<std::string>& names) {
  return names.size() <= kTapEventNamesMax &&
         NameBytes(names) + sizeof(TapStart) <= kTapMessageBytesMax &&
         std::all_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.size() <= kTapEventNameBytesMax; });
}

}  // namespace

// Clamped to what a tap accepts, as the aggregator may be of another version.
uint64_t RingEventsPerCore(const CaptureSpec& spec) {
  const uint64_t events = spec.retention.ring_events_per_core;
  return std::clamp(events == 0 ? limits::kRingEventsPerCoreDefault : events, kTapEventsPerCoreMin,
                    kTapEventsPerCoreMax);
}

absl::StatusOr<TapStartOrder> MakeStartOrder(const CapturePlan& plan, const WorkerFacts& worker,
                                             uint32_t fidelity) {
  TapStartOrder order;
  order.capture_id = plan.id;
  order.events_per_core = RingEventsPerCore(plan.spec);
  order.holds = plan.spec.mode == CaptureMode::kFlightRecorder;
  for (const uint32_t core : plan.spec.selection.neuron_cores) {
    if (core < limits::kCoresPerWorkerMax) order.core_bitmap[core / 64] |= uint64_t{1} << core % 64;
  }
  // A type is recorded if both the capture and the level of fidelity select it.
  const EventFilter& left = FilterOfFidelity(fidelity);
  const bool is_all = plan.filter.selects_all() && left.selects_all();
  // Without the runtime's list nothing can be resolved; everything is recorded and the agent
  // filters.
  if (is_all || worker.event_types.empty()) return order;
  std::vector<std::string> wanted;
  std::vector<std::string> unwanted;
  for (const std::string& type : worker.event_types) {
    const bool is_wanted = plan.filter.Selects(type) && left.Selects(type);
    (is_wanted ? wanted : unwanted).push_back(type);
  }
  // No trace is started for nothing. A misspelt type is the usual reason, so the message suggests
  // the nearest one.
  if (wanted.empty()) {
    std::string unknown;
    for (const auto& [item, nearest] :
         UnknownEventTypes(plan.spec.filter.event_types, worker.event_types)) {
      unknown += fmt::format("; unknown event type '{}'{}", item,
                             nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest));
    }
    return InvalidArgument("the filter selects none of the runtime's {} event types{}",
                           worker.event_types.size(), unknown);
  }
  // All listed types are selected: the default rule also records types that the list lacks.
  if (unwanted.empty()) return order;
  // Exclusion, unless selection is shorter: types that the list does not name are then recorded,
  // and the agent's filter decides about them.
  if (unwanted.size() <= wanted.size() && MatchesStart(unwanted)) {
    order.rule = TapEventRule::kAllButThese;
    order.names = std::move(unwanted);
  } else if (MatchesStart(wanted)) {
    order.rule = TapEventRule::kOnlyThese;
    order.names = std::move(wanted);
  }
  return order;
}

// Every state is listed, without a default, so that the compiler reports a new one.
std::string DescribeForCapture(TapState state, int32_t nrt_status, const std::string& detail) {
  std::string words;
  switch (state) {
    case TapState::kNotInitialised:
      words = "the runtime is not initialised yet; recording begins when it is";
      break;
    case TapState::kBusyOtherProfiler:
      words = "another profiler is active; a standing capture begins when it ends";
      break;
    case TapState::kRuntimeTooOld:
      words = "the runtime is too old: it lacks the trace calls of Neuron SDK 2.22";
      break;
    case TapState::kClosed:
      words = "the runtime is closed; recording begins when it is initialised again";
      break;
    case TapState::kExited:
      words = "the process is ending";
      break;
    case TapState::kStartFailed:
      words = fmt::format("the runtime refused to start a trace (status {}); the tap retries",
                          nrt_status);
      break;
    case TapState::kIdle:
    case TapState::kStreaming:
    case TapState::kHolding:
      break;
  }
  if (!detail.empty()) words += (words.empty() ? "" : ": ") + detail;
  return words;
}

// Empty for stops that the agent ordered, which need no explanation.
std::string DescribeStop(TapStopReason reason) {
  switch (reason) {
    case TapStopReason::kCommand:
      return "";
    case TapStopReason::kRuntimeClosed:
      return "the worker closed the runtime; recording continues when it is initialised again";
    case TapStopReason::kProcessExit:
      return "the worker ended";
    case TapStopReason::kYielded:
      return "suspended for another profiler; recording continues when it ends";
    case TapStopReason::kOrphaned:
      return "stopped because no agent was connected for a minute";
    case TapStopReason::kFetchFailed:
      return "another caller ended the runtime's trace; recording continues when a new trace can "
             "start";
    case TapStopReason::kCollected:
      return "";
  }
  return "stopped for a reason that this agent does not know";
}

// A state of a newer tap counts as a refusal.
CaptureObstacle ObstacleOf(TapState state) {
  switch (state) {
    case TapState::kBusyOtherProfiler:
      return CaptureObstacle::kOtherProfiler;
    case TapState::kRuntimeTooOld:
      return CaptureObstacle::kRuntimeTooOld;
    case TapState::kNotInitialised:
    case TapState::kClosed:
      return CaptureObstacle::kNotInitialised;
    case TapState::kExited:
      return CaptureObstacle::kEnded;
    case TapState::kStartFailed:
      return CaptureObstacle::kRuntimeRefused;
    case TapState::kIdle:
    case TapState::kStreaming:
    case TapState::kHolding:
      return CaptureObstacle::kNone;
  }
  return CaptureObstacle::kRuntimeRefused;
}

// A flight recorder is suspended for continuous captures, and both for captures that end.
int Precedence(CaptureMode mode) {
  switch (mode) {
    case CaptureMode::kFlightRecorder:
      return 0;
    case CaptureMode::kContinuous:
      return 1;
    default:
      return 2;
  }
}

}  // namespace neurontrace
