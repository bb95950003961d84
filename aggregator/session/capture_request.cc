// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/capture_request.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "lib/base/status.h"
#include "lib/trace/capture_selection.h"
#include "lib/trace/event_filter.h"
#include "lib/trace/framework_limits.h"
#include "lib/trace/framework_trace.h"

namespace neurontrace {
namespace {

// Names a standing mode in messages. Requires kFlightRecorder or kContinuous.
std::string_view NameOf(const CaptureSpec& spec) {
  if (spec.watch) return "watch";
  return spec.mode == CaptureMode::kFlightRecorder ? "flight recorder" : "continuous capture";
}

// Fails with INVALID_ARGUMENT if the frameworks of the spec cannot be asked for what it wants.
absl::Status CheckFrameworks(const CaptureSpec& spec) {
  const CaptureSpec::Filter& filter = spec.filter;
  if (filter.frameworks.empty()) {
    if (filter.framework_steps == 0 && filter.framework_first_step == 0) return absl::OkStatus();
    return InvalidArgument("steps are those of a framework; name it, as in frameworks: pytorch");
  }
  for (const std::string& name : filter.frameworks) {
    if (IsOnDemandFramework(name)) continue;
    return InvalidArgument("framework '{}' cannot record on demand; known are {}", name,
                           fmt::join(kOnDemandFrameworks, ", "));
  }
  if (std::set(filter.frameworks.begin(), filter.frameworks.end()).size() !=
      filter.frameworks.size()) {
    return InvalidArgument("a framework is named twice");
  }
  if (spec.mode != CaptureMode::kStream || !filter.include_framework) {
    return InvalidArgument(
        "frameworks record on demand only in a capture of future events that includes framework "
        "files");
  }
  const bool asks_xla = std::find(filter.frameworks.begin(), filter.frameworks.end(),
                                  kXlaFramework) != filter.frameworks.end();
  if (asks_xla && filter.framework_steps != 0) {
    return InvalidArgument("xla records by time: give a duration and no steps, or omit xla");
  }
  if (asks_xla && spec.timing.duration_ns > limits::kXlaDurationNsMax) {
    return InvalidArgument(
        "xla records for at most {} s, as workers keep the trace in memory; give a shorter "
        "duration",
        limits::kXlaDurationNsMax / 1'000'000'000);
  }
  if (filter.framework_steps == 0 && filter.framework_first_step != 0) {
    return InvalidArgument("framework_first_step needs framework_steps");
  }
  if (filter.framework_steps == 0 && spec.timing.duration_ns == 0) {
    return InvalidArgument(
        "a framework's trace cannot be stopped early: give the capture a duration, or the trace a "
        "number of steps");
  }
  return absl::OkStatus();
}

// Fails with INVALID_ARGUMENT if fields of the spec contradict its mode.
absl::Status CheckMode(const CaptureSpec& spec) {
  if (spec.mode != CaptureMode::kSnapshot && spec.timing.last_ns > 0) {
    return InvalidArgument("last_ns is allowed only for a snapshot of a flight recorder; omit it");
  }
  if (spec.mode != CaptureMode::kSnapshot && !spec.timing.flight_recorder.empty()) {
    return InvalidArgument("only a snapshot collects the rings of a flight recorder");
  }
  if (spec.mode == CaptureMode::kContinuous && spec.retention.duration_ns == 0 &&
      spec.retention.bytes == 0) {
    return InvalidArgument(
        "a continuous capture needs a retention in time or bytes, because it grows without limit "
        "otherwise");
  }
  if (spec.watch && (spec.mode != CaptureMode::kContinuous || !spec.filter.include_neuron)) {
    return InvalidArgument("a watch is a continuous capture of the runtime's events");
  }
  if (!spec.filter.include_neuron && !spec.filter.include_framework) {
    return InvalidArgument("the capture excludes both the runtime's events and the framework's");
  }
  RETURN_IF_ERROR(CheckFrameworks(spec));
  if (!spec.filter.include_neuron && spec.mode != CaptureMode::kStream &&
      spec.mode != CaptureMode::kContinuous) {
    return InvalidArgument("this mode records only the runtime's events, which are excluded");
  }
  return absl::OkStatus();
}

// The event types that verdicts are made of. A runtime has only some of them, as versions use other
// names.
constexpr std::string_view kWatchTypes[] = {
    "nrt_execute", "kbl_exec_pre", "kbl_exec_post", "nc_exec_running", "device_exec", "cc_running",
    "cc_exec", "enc_barrier", "cc_exec_barrier", "numerical_err",
    // They tell what fills the gaps between executions; a budget leaves them out first.
    "nrt_tensor_read", "nrt_tensor_read_batch", "nrt_tensor_write", "nrt_tensor_write_batch",
    "nrt_tensor_copy", "nrt_tensor_allocate", "nrt_tensor_free", "nrt_dma_mem_alloc",
    "nrt_dma_mem_dealloc"};

// Returns the event types of the selected workers' runtimes, sorted; empty if none is known.
std::vector<std::string> KnownEventTypes(const CaptureSpec& spec, const AgentRegistry& registry) {
  std::set<std::string> types;
  for (const auto& [agent_id, agent] : registry.agents()) {
    for (const auto& [identity, worker] : agent.workers) {
      if (Selects(spec, worker)) types.insert(worker.event_types.begin(), worker.event_types.end());
    }
  }
  return {types.begin(), types.end()};
}

// Returns those types of a watch that a runtime of the selected workers has; all of them if none is
// known yet.
std::vector<std::string> WatchEventTypes(const CaptureSpec& spec, const AgentRegistry& registry) {
  const std::vector<std::string> known = KnownEventTypes(spec, registry);
  std::vector<std::string> types;
  for (const std::string_view type : kWatchTypes) {
    if (known.empty() || std::ranges::binary_search(known, type)) types.emplace_back(type);
  }
  return types;
}

// Types of framework traces are in no runtime's list; their names contain blanks or colons.
bool CanBeFrameworkType(const CaptureSpec& spec, std::string_view name) {
  return spec.filter.include_framework && name.find_first_of(" :") != std::string_view::npos;
}

// Fails with INVALID_ARGUMENT for an event type that no selected worker's runtime has. A misspelt
// type would otherwise record nothing, which is noticed only after the capture.
absl::Status CheckEventTypes(const CaptureSpec& spec, const AgentRegistry& registry) {
  RETURN_IF_ERROR(EventFilter::Parse(spec.filter.event_types).status());
  const std::vector<std::string> known = KnownEventTypes(spec, registry);
  // Without a selected worker there is nothing to compare with.
  if (known.empty()) return absl::OkStatus();
  for (const UnknownEventType& unknown : UnknownEventTypes(spec.filter.event_types, known)) {
    const std::string name = unknown.item.substr(unknown.item.starts_with('^') ? 1 : 0);
    if (CanBeFrameworkType(spec, name)) continue;
    return InvalidArgument(
        "unknown event type '{}'{}; the runtimes of the selected workers provide {}", name,
        unknown.nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", unknown.nearest),
        fmt::join(known.begin(), known.end(), ", "));
  }
  return absl::OkStatus();
}

// Describes a running standing capture, without its id and job if the caller may not learn of it.
std::string RunsAlready(const CaptureRecord& record, const CanName& can_name) {
  const std::string_view mode = NameOf(record.spec);
  if (can_name && !can_name(record.spec)) {
    return fmt::format("{} of another user is already running", mode);
  }
  return fmt::format("{} {} is already running{}", mode, record.id.ToString(),
                     record.spec.selection.job.empty() ? " for all jobs"
                                                       : " for job " + record.spec.selection.job);
}

// Finds the one recorder that the snapshot can mean, and completes the spec from it.
absl::Status AdoptFlightRecorder(const CaptureContext& capture_context, CaptureSpec& spec) {
  std::vector<const CaptureRecord*> fitting;
  for (const CaptureRecord* const record : capture_context.running) {
    if (record->spec.mode != CaptureMode::kFlightRecorder) continue;
    if (!spec.timing.flight_recorder.empty() && record->id != spec.timing.flight_recorder) continue;
    if (CanOverlap(record->spec, spec)) fitting.push_back(record);
  }
  if (fitting.empty()) {
    return FailedPrecondition(
        "no flight recorder is on{}; start one with neurontrace flight-recorder on; earlier events "
        "cannot be recovered",
        spec.selection.empty() ? "" : " for the selected workers");
  }
  if (fitting.size() > 1) {
    std::string named;
    for (const CaptureRecord* const record : fitting) {
      if (capture_context.can_name && !capture_context.can_name(record->spec)) continue;
      named += fmt::format(
          "{}{}{}", named.empty() ? "" : ", ", record->id.ToString(),
          record->spec.selection.job.empty() ? "" : " of job " + record->spec.selection.job);
    }
    return FailedPrecondition("{} flight recorders match{}{}; select one with its job",
                              fitting.size(), named.empty() ? "" : ": ", named);
  }
  const CaptureRecord& recorder = *fitting.front();
  if (recorder.state != CaptureState::kRecording) {
    return FailedPrecondition("flight recorder {} is {}, so its rings are not held",
                              recorder.id.ToString(),
                              recorder.state == CaptureState::kArming ? "arming" : "stopping");
  }
  spec.timing.flight_recorder = recorder.id;
  const CaptureSpec& held = recorder.spec;
  // What the snapshot leaves open is taken from the recorder.
  if (spec.selection.empty()) spec.selection = held.selection;
  if (spec.filter.event_types.empty()) {
    spec.filter.event_types = held.filter.event_types;
    spec.filter.all_events = held.filter.all_events;
  }
  // The rings hold what the runtimes have recorded, so their size is given.
  spec.retention.ring_events_per_core = held.retention.ring_events_per_core;
  spec.filter.include_framework = false;
  spec.timing.duration_ns = 0;
  return absl::OkStatus();
}

// Fails with FAILED_PRECONDITION if a standing capture of the same mode may select the same worker.
// One that is stopping does not count, so that it can be replaced at once.
absl::Status CheckStanding(const CaptureContext& capture_context, const CaptureSpec& spec) {
  for (const CaptureRecord* const record : capture_context.running) {
    if (record->spec.mode != spec.mode || record->state == CaptureState::kStopping) continue;
    if (!CanOverlap(record->spec, spec)) continue;
    return FailedPrecondition(
        "{}, and a worker can have only one; stop it first, or select other jobs",
        RunsAlready(*record, capture_context.can_name));
  }
  return absl::OkStatus();
}

// Returns whether both lists restrict the selection and have nothing in common. An empty list
// selects everything.
template <typename T>
bool AreDisjoint(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.empty() || b.empty()) return false;
  return std::none_of(a.begin(), a.end(), [&](const T& item) {
    return std::find(b.begin(), b.end(), item) != b.end();
  });
}

// The same for ranges, which contain both of their ends.
bool AreDisjoint(const std::vector<GidRange>& a, const std::vector<GidRange>& b) {
  if (a.empty() || b.empty()) return false;
  for (const GidRange& one : a) {
    for (const GidRange& other : b) {
      if (one.first <= other.last && other.first <= one.last) return false;
    }
  }
  return true;
}

// A worker has one value of each fact. Labels have a fact of their own for each key.
bool Contradict(const std::vector<KeyValue>& a, const std::vector<KeyValue>& b) {
  for (const KeyValue& one : a) {
    for (const KeyValue& other : b) {
      if (one.key == other.key && one.value != other.value) return true;
    }
  }
  return false;
}

}  // namespace

// Errs towards true: it compares the specs and not the workers, because a worker may start later
// that both select.
bool CanOverlap(const CaptureSpec& a, const CaptureSpec& b) {
  if (!a.selection.job.empty() && !b.selection.job.empty() && a.selection.job != b.selection.job)
    return false;
  return !AreDisjoint(a.selection.instance_ids, b.selection.instance_ids) &&
         !Contradict(a.selection.job_facts, b.selection.job_facts) &&
         !AreDisjoint(a.selection.worker_gids, b.selection.worker_gids);
}

std::set<std::string> SelectedJobs(const CaptureSpec& spec, const AgentRegistry& registry) {
  std::set<std::string> jobs;
  for (const auto& [agent_id, agent] : registry.agents()) {
    for (const auto& [identity, worker] : agent.workers) {
      if (!worker.job.empty() && Selects(spec, worker)) jobs.insert(worker.job);
    }
  }
  return jobs;
}

absl::StatusOr<CaptureSpec> CompleteSpec(CaptureSpec spec, const CaptureContext& capture_context) {
  RETURN_IF_ERROR(CheckMode(spec));
  if (spec.mode == CaptureMode::kSnapshot) {
    RETURN_IF_ERROR(AdoptFlightRecorder(capture_context, spec));
  }
  if (IsStanding(spec.mode)) RETURN_IF_ERROR(CheckStanding(capture_context, spec));
  if (spec.watch && spec.filter.event_types.empty() && !spec.filter.all_events) {
    spec.filter.event_types = WatchEventTypes(spec, capture_context.registry);
  }
  RETURN_IF_ERROR(CheckEventTypes(spec, capture_context.registry));
  if (spec.filter.event_types.empty() && !spec.filter.all_events)
    spec.filter.event_types = DefaultEventFilter();
  // Cores that are to stop together have to begin together.
  if (spec.conditions.executions > 0 && spec.conditions.at_execution == 0)
    spec.conditions.at_next_execution = true;
  return spec;
}

}  // namespace neurontrace
