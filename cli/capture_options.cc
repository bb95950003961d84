// SPDX-License-Identifier: Apache-2.0
#include "cli/capture_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "cli/quantity.h"
#include "cli/shared_options.h"
#include "cli/text.h"
#include "lib/base/quantity.h"
#include "lib/base/status.h"
#include "lib/trace/framework_limits.h"
#include "lib/trace/reserved_tags.h"
#include "lib/wire/field_checks.h"

namespace neurontrace::cli {
namespace {

// Keys that --job KEY=VALUE accepts. Pods and their labels also have options of their own.
constexpr std::array<std::string_view, 8> kJobFacts = {
    "job", "slurm", "torchelastic", "comm", "master", "namespace", "pod", "uid"};

// Adds a condition that selected workers must meet; conditions accumulate.
void AddFact(std::string key, std::string value, v1::CaptureSpec& spec) {
  v1::KeyValue* const fact = spec.add_job_facts();
  fact->set_key(std::move(key));
  fact->set_value(std::move(value));
}

// Sets the job's name and facts from --job. A worker has one name of a job, so two different names
// would select nobody and are refused.
absl::Status ParseJobs(const CaptureOptions& options, v1::CaptureSpec& spec) {
  for (const std::string& job : options.jobs) {
    RETURN_IF_ERROR(CheckIdentityText("--job", job));
    if (job.find('=') == std::string::npos) {
      if (!spec.job().empty() && spec.job() != job) {
        return InvalidArgument(
            "--job {} and --job {}: no worker belongs to both; start one capture per job, or "
            "select the jobs' instances with --instance",
            spec.job(), job);
      }
      spec.set_job(job);
      continue;
    }
    ASSIGN_OR_RETURN(const v1::KeyValue fact, ParseKeyValue(job));
    if (std::find(kJobFacts.begin(), kJobFacts.end(), fact.key()) == kJobFacts.end() &&
        !fact.key().starts_with("label:")) {
      return InvalidArgument(
          "--job {}: unknown key '{}'; use job, slurm, torchelastic, comm, namespace, pod or uid "
          "(for a pod label: --label {})",
          job, fact.key(), job);
    }
    AddFact(fact.key(), fact.value(), spec);
  }
  return absl::OkStatus();
}

// Sets which workers and cores take part. Options of different kinds narrow the selection, values
// of one list widen it.
absl::Status ParseSelection(const CaptureOptions& options, v1::CaptureSpec& spec) {
  RETURN_IF_ERROR(ParseJobs(options, spec));
  for (const std::string& name : options.namespaces) AddFact("namespace", name, spec);
  for (const std::string& pod : options.pods) AddFact("pod", pod, spec);
  for (const std::string& label : options.pod_labels) {
    ASSIGN_OR_RETURN(const v1::KeyValue pair, ParseKeyValue(label));
    AddFact("label:" + pair.key(), pair.value(), spec);
  }
  for (const std::string& text : options.worker_gids) {
    ASSIGN_OR_RETURN(const std::vector<v1::GidRange> ranges, ParseGidRanges(text));
    for (const v1::GidRange& range : ranges) *spec.add_worker_gids() = range;
  }
  for (const std::string& id : SplitList(options.instances)) {
    RETURN_IF_ERROR(CheckIdentityText("--instance", id));
    spec.add_instance_ids(id);
  }
  ASSIGN_OR_RETURN(const std::vector<uint32_t> cores, CoresOf(options.cores));
  for (const uint32_t core : cores) spec.add_neuron_cores(core);
  return absl::OkStatus();
}

// Sets event types, ring capacity, sources and budgets.
absl::Status TakeEvents(const CaptureOptions& options, v1::CaptureSpec& spec) {
  ASSIGN_OR_RETURN(const std::vector<std::string> types,
                   EventTypesOf(options.event_types, options.all_events));
  if (options.no_neuron && options.no_framework) {
    return InvalidArgument("--no-neuron and --no-framework leave nothing to record");
  }
  for (const std::string& type : types) spec.add_event_types(type);
  spec.set_all_events(options.all_events);
  spec.set_ring_events_per_core(options.ring_events);
  spec.set_include_neuron(!options.no_neuron);
  spec.set_include_framework(!options.no_framework);
  if (!options.budget_core.empty()) {
    ASSIGN_OR_RETURN(const uint32_t ppm, ParseProcessorShare(options.budget_core));
    spec.set_budget_core_ppm(ppm);
  }
  if (!options.budget_rate.empty()) {
    ASSIGN_OR_RETURN(const uint64_t rate, ParseByteRate(options.budget_rate));
    spec.set_budget_bytes_per_second(rate);
  }
  return absl::OkStatus();
}

// Parses the number of an execution or a step, at least 1; the whole text must be digits.
absl::StatusOr<uint64_t> ParseExecution(std::string_view option, const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0) {
    return InvalidArgument("{} {}: must be a number of at least 1{}", option, text,
                           option.starts_with("--at-") ? ", or next" : "");
  }
  return number;
}

// Names an option and whether it was given, for refusals.
struct Given {
  std::string_view name;
  bool is_given;
};
// Returns the name of the first option that was given, or "".
template <size_t N>
std::string_view FirstSet(const Given (&options)[N]) {
  for (const Given& option : options) {
    if (option.is_given) return option.name;
  }
  return "";
}

// Sets what is asked of frameworks. The aggregator checks their names.
absl::Status ParseFrameworks(const CaptureOptions& options, v1::CaptureSpec& spec) {
  const Given wishes[] = {{"--framework", !options.framework.empty()},
                          {"--steps", !options.steps.empty()},
                          {"--at-step", !options.at_step.empty()},
                          {"--framework-stacks", options.framework_stacks}};
  const std::string_view wish = FirstSet(wishes);
  if (wish.empty()) return absl::OkStatus();
  const Given others[] = {{"--no-framework", options.no_framework},
                          {"--last", !options.last.empty()},
                          {"--continuous", options.continuous},
                          {"--dry-run", options.dry_run}};
  if (const std::string_view other = FirstSet(others); !other.empty()) {
    return InvalidArgument("{} asks frameworks to record, which {} excludes; omit one of them",
                           wish, other);
  }
  if (options.framework.empty()) {
    return InvalidArgument("{} describes a trace of a framework; add --framework", wish);
  }
  for (const std::string& name : SplitList({options.framework})) {
    RETURN_IF_ERROR(CheckIdentityText("--framework", name));
    spec.add_frameworks(name);
  }
  spec.set_framework_stacks(options.framework_stacks);
  if (options.steps.empty()) {
    if (!options.at_step.empty()) {
      return InvalidArgument("--at-step {} needs --steps N, the number of steps", options.at_step);
    }
    if (options.duration.empty()) {
      return InvalidArgument(
          "--framework needs --duration, or --steps: a framework's trace cannot be stopped early");
    }
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const uint64_t steps, ParseExecution("--steps", options.steps));
  if (steps > limits::kFrameworkStepsMax) {
    return InvalidArgument("--steps {}: at most {} are recorded at once", options.steps,
                           limits::kFrameworkStepsMax);
  }
  spec.set_framework_steps(static_cast<uint32_t>(steps));
  if (options.at_step.empty() || options.at_step == "next") return absl::OkStatus();
  ASSIGN_OR_RETURN(const uint64_t first, ParseExecution("--at-step", options.at_step));
  spec.set_framework_first_step(first);
  return absl::OkStatus();
}

// Sets begin and end of the recording. Without any of these options it lasts until it is stopped.
absl::Status ParseDurationOption(const CaptureOptions& options, v1::CaptureSpec& spec) {
  if (!options.duration.empty()) {
    ASSIGN_OR_RETURN(const uint64_t ns, ParseDuration(options.duration));
    if (ns == 0) {
      return InvalidArgument("--duration {}: omit it to record until Ctrl-C", options.duration);
    }
    spec.set_duration_ns(ns);
  }
  if (!options.executions.empty()) {
    ASSIGN_OR_RETURN(const uint64_t count, ParseExecution("--executions", options.executions));
    spec.set_executions(count);
  }
  if (options.at_execution == "next") {
    spec.set_at_next_execution(true);
  } else if (!options.at_execution.empty()) {
    ASSIGN_OR_RETURN(const uint64_t at, ParseExecution("--at-execution", options.at_execution));
    spec.set_at_execution(at);
  }
  if (!options.bytes_max.empty()) {
    ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(options.bytes_max));
    spec.set_bytes_max(bytes);
  }
  return absl::OkStatus();
}

// Sets the mode of a snapshot of the flight recorder's rings. Refuses every option about the
// future, and those that the rings' own capture has decided.
absl::Status TakeSnapshot(const CaptureOptions& options, v1::CaptureSpec& spec) {
  const Given others[] = {{"--continuous", options.continuous},
                          {"--duration", !options.duration.empty()},
                          {"--executions", !options.executions.empty()},
                          {"--at-execution", !options.at_execution.empty()}};
  if (const std::string_view other = FirstSet(others); !other.empty()) {
    return InvalidArgument(
        "--last selects events before now and {} events from now on; use two captures", other);
  }
  const Given fixed[] = {{"--all-events", options.all_events},
                         {"--ring-events", options.ring_events != 0}};
  if (const std::string_view option = FirstSet(fixed); !option.empty()) {
    return InvalidArgument(
        "{} cannot be used with --last: the flight recorder's own options decide what the rings "
        "hold; pass it to neurontrace flight-recorder on",
        option);
  }
  if (options.dry_run) {
    return InvalidArgument(
        "--dry-run cannot be used with --last; neurontrace flight-recorder status shows the rings");
  }
  spec.set_mode(v1::CAPTURE_MODE_SNAPSHOT);
  // The rings hold no framework files.
  spec.set_include_framework(false);
  if (options.last == "all") return absl::OkStatus();
  ASSIGN_OR_RETURN(const uint64_t ns, ParseSpan("--last", options.last));
  spec.set_last_ns(ns);
  return absl::OkStatus();
}

// Sets the mode of a standing capture, which needs a limit of what it keeps: it never ends by
// itself and would fill the store.
absl::Status ParseContinuous(const CaptureOptions& options, v1::CaptureSpec& spec) {
  const Given others[] = {{"--duration", !options.duration.empty()},
                          {"--executions", !options.executions.empty()},
                          {"--at-execution", !options.at_execution.empty()},
                          {"--max-size", !options.bytes_max.empty()},
                          {"--keep-for", !options.keep_for.empty()}};
  if (const std::string_view other = FirstSet(others); !other.empty()) {
    return InvalidArgument(
        "{} cannot be used with --continuous, which runs until it is stopped; set how much is kept "
        "with --keep 10m or --keep-bytes 5GB",
        other);
  }
  if (options.keep.empty() && options.keep_bytes.empty()) {
    return InvalidArgument(
        "--continuous needs --keep 10m or --keep-bytes 5GB, beyond which old events are deleted");
  }
  spec.set_mode(v1::CAPTURE_MODE_CONTINUOUS);
  if (!options.keep.empty()) {
    ASSIGN_OR_RETURN(const uint64_t ns, ParseSpan("--keep", options.keep));
    spec.set_retention_ns(ns);
  }
  if (!options.keep_bytes.empty()) {
    ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(options.keep_bytes));
    spec.set_retention_bytes(bytes);
  }
  return absl::OkStatus();
}

// Sets mode and retention. Called after ParseDurationOption because a dry run replaces the duration
// of a standing capture.
absl::Status ParseMode(const CaptureOptions& options, v1::CaptureSpec& spec) {
  if (!options.last.empty()) {
    RETURN_IF_ERROR(TakeSnapshot(options, spec));
  } else if (options.continuous) {
    RETURN_IF_ERROR(ParseContinuous(options, spec));
  }
  if (!options.continuous && !(options.keep.empty() && options.keep_bytes.empty())) {
    return InvalidArgument(
        "{} requires --continuous; use --keep-for 7d to delete a capture after its end, or "
        "--max-size 2GB to stop one at that size",
        options.keep.empty() ? "--keep-bytes" : "--keep");
  }
  if (!options.keep_for.empty()) {
    ASSIGN_OR_RETURN(const uint64_t ns, ParseSpan("--keep-for", options.keep_for));
    spec.set_retention_ns(ns);
  }
  // A dry run comes last: it predicts the cost of the mode that is set by now.
  if (!options.dry_run) return absl::OkStatus();
  if (!options.executions.empty() || !options.at_execution.empty()) {
    return InvalidArgument(
        "--dry-run cannot predict executions; estimate how long they take with --duration");
  }
  if (options.continuous) spec.set_duration_ns(spec.retention_ns());  // what is kept of it
  spec.set_mode(v1::CAPTURE_MODE_PREVIEW);
  return absl::OkStatus();
}

// Sets name, tags and the share of workers that must take part. Reserved tags are refused as the
// aggregator writes them itself.
absl::Status ParseConditions(const CaptureOptions& options, v1::CaptureSpec& spec) {
  RETURN_IF_ERROR(CheckIdentityText("--name", options.name));
  spec.set_name(options.name);
  for (const std::string& tag : options.tags) {
    ASSIGN_OR_RETURN(v1::KeyValue pair, ParseKeyValue(tag));
    RETURN_IF_ERROR(CheckIdentityText("--tag, its key,", pair.key()));
    RETURN_IF_ERROR(CheckIdentityText("--tag, its value,", pair.value()));
    if (IsReservedTag(pair.key())) {
      return InvalidArgument(
          "--tag {}: the key '{}' is reserved for the aggregator; choose another key", tag,
          pair.key());
    }
    *spec.add_labels() = std::move(pair);
  }
  if (!options.require.empty()) {
    ASSIGN_OR_RETURN(const uint32_t percent, ParseRequirement(options.require));
    spec.set_require_percent(percent);
  }
  return absl::OkStatus();
}

// Adds an option that may be repeated but takes one value each time, so that a word after it is not
// swallowed.
CLI::Option* AddList(CLI::App& command, const char* names, std::vector<std::string>& values,
                     const char* text) {
  return command.add_option(names, values, text)->allow_extra_args(false);
}

// Adds an option with a text. Refuses an empty value, which SpecOf could not distinguish from an
// absent option.
void AddText(CLI::App& command, const char* names, std::string& value, const char* text) {
  command.add_option(names, value, text)->check(NotEmpty("omit it to give no name"));
}

}  // namespace

void AddSelectionOptions(CLI::App& command, CaptureOptions& options) {
  AddList(command, "--job", options.jobs,
          "Only workers of this job, by any of its names, or by KEY=VALUE: slurm=4711, "
          "torchelastic=…, comm=HOST:PORT")
      ->check(NotEmpty("omit it for workers of every job"));
  AddList(command, "--namespace", options.namespaces, "Only workers in this Kubernetes namespace")
      ->check(NotEmpty("omit it for workers in all namespaces"));
  AddList(command, "--pod", options.pods, "Only workers in this pod")
      ->check(NotEmpty("omit it for workers in all pods"));
  AddList(command, "--label", options.pod_labels,
          "Only workers in pods with this label: KEY=VALUE");
  AddList(command, "--worker-gid", options.worker_gids,
          "Only workers that have a core with one of these global ranks: 0-7,64")
      ->check(NotEmpty("omit it for all ranks"));
  AddInstances(command, options.instances);
  AddCores(command, options.cores);
}

void AddEventOptions(CLI::App& command, CaptureOptions& options) {
  AddEventTypes(command, options.event_types);
  command.add_flag("--all-events", options.all_events,
                   "Include allocation events, which are omitted unless an event type is named");
  command
      .add_option("--ring-events", options.ring_events,
                  "Capacity of the runtime's ring of each core, in events (default 65536)")
      ->check(CheckWholeNumber);
  command.add_flag("--no-framework", options.no_framework, "Exclude framework trace files");
  AddText(command, "--budget-core", options.budget_core,
          "Processor time that recording may use, per worker, as a share of one processor: 2%");
  AddText(command, "--budget-rate", options.budget_rate,
          "Rate at which recording may send, per worker: 10MB/s");
}

void AddTimeOptions(CLI::App& command, CaptureOptions& options) {
  AddText(command, "-d,--duration", options.duration,
          "How long to record, such as 30s or 2m (default: until it is stopped)");
  AddText(command, "--executions", options.executions,
          "Stop after this many executions on each core");
  AddText(command, "--at-execution", options.at_execution,
          "Start at this execution on all cores: a number, or next");
  command.add_flag("--framework{pytorch}", options.framework,
                   "Also have the framework of each worker record its CPU operators and "
                   "annotations: pytorch, xla (jax and torch_xla, up to 60 s), or pytorch,xla. The "
                   "capture then begins 7 s later");
  AddText(command, "--steps", options.steps,
          "With --framework: record this many optimizer steps instead of the duration");
  AddText(command, "--at-step", options.at_step,
          "With --steps: the first of them, a number or next (a multiple of 100)");
  command.add_flag("--framework-stacks", options.framework_stacks,
                   "With --framework: record call stacks too, which doubles the time of steps");
  command.add_flag("--no-neuron", options.no_neuron, "Exclude the Neuron Runtime's events");
  AddText(command, "--max-size", options.bytes_max, "Stop when this much is stored: 2GB");
  AddText(command, "--last", options.last,
          "Record the most recent events from the flight recorder: 20s, or all");
  command.add_flag("--continuous", options.continuous,
                   "Run until it is stopped, and keep only the newest: --keep, --keep-bytes");
  AddText(command, "--keep", options.keep, "With --continuous: delete events older than this: 10m");
  AddText(command, "--keep-bytes", options.keep_bytes,
          "With --continuous: delete the oldest events beyond this size: 5GB");
  AddText(command, "--keep-for", options.keep_for,
          "Delete the capture this long after its end: 7d (default: never)");
  command.add_flag("--dry-run", options.dry_run,
                   "Record nothing: measure briefly and print what the capture would cost");
}

void AddConditionOptions(CLI::App& command, CaptureOptions& options) {
  AddText(command, "--require", options.require,
          "Start only if this many of the selected workers can take part: all, any, 90% (default: "
          "any)");
  AddText(command, "--name", options.name, "Name to find the capture by");
  AddList(command, "--tag", options.tags, "KEY=VALUE to find the capture by; may be repeated");
}

// Each function checks its own options; ParseMode also checks those of ParseDurationOption.
absl::StatusOr<v1::CaptureSpec> SpecOf(const CaptureOptions& options) {
  v1::CaptureSpec spec;
  RETURN_IF_ERROR(ParseSelection(options, spec));
  RETURN_IF_ERROR(TakeEvents(options, spec));
  RETURN_IF_ERROR(ParseFrameworks(options, spec));
  RETURN_IF_ERROR(ParseDurationOption(options, spec));
  RETURN_IF_ERROR(ParseMode(options, spec));
  RETURN_IF_ERROR(ParseConditions(options, spec));
  return spec;
}

std::string DescribeDefaultFilter(const v1::CaptureSpec& spec) {
  const bool is_default = spec.event_types().empty() && !spec.all_events();
  if (!is_default || !spec.include_neuron() || spec.mode() == v1::CAPTURE_MODE_SNAPSHOT) return "";
  return "omitting allocation events; --all-events includes them";
}

}  // namespace neurontrace::cli
