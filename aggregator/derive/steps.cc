// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/steps.h"

#include <strings.h>

#include <algorithm>
#include <iterator>
#include <tuple>

namespace neurontrace {
namespace {

// The names and categories are those of PyTorch's and JAX's profilers.
constexpr std::string_view kStepPrefix = "ProfilerStep#";
// Rows of accelerators repeat the annotation, widened to what the device did.
constexpr std::string_view kDeviceCategoryPrefixes[] = {"gpu_", "xla_device"};

// The name of an annotated step begins with it, or is it, in letters of either case.
constexpr std::string_view kStep = "step";

// Framework steps that are equal in all of these are interchangeable.
bool IsBefore(const Step& a, const Step& b) {
  const auto key = [](const Step& step) {
    return std::tuple(step.start_ns, step.stream, step.number, step.end_ns, step.executions,
                      step.device_busy_ns, step.is_open);
  };
  return key(a) < key(b);
}

// Returns whether the text begins with "step", with letters of either case.
bool BeginsWithStep(std::string_view text) {
  return text.size() >= kStep.size() && strncasecmp(text.data(), kStep.data(), kStep.size()) == 0;
}

}  // namespace

// The whole rest of the name must be a number.
std::optional<uint64_t> ProfilerStepNumber(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  name.remove_prefix(kStepPrefix.size());
  return NumberInText(name);
}

std::optional<uint64_t> AnnotatedStepNumber(std::string_view name, std::string_view category,
                                            std::optional<uint64_t> payload) {
  constexpr std::string_view kBetween = " #:_-";
  const bool is_step = BeginsWithStep(name);
  const bool has_step_payload = (is_step && name.size() == kStep.size()) ||
                                (BeginsWithStep(category) && category.size() == kStep.size());
  if (payload && has_step_payload) return payload;
  if (!is_step) return std::nullopt;
  name.remove_prefix(kStep.size());
  // "steps 3" and "step size 3" are none.
  while (!name.empty() && kBetween.find(name.front()) != kBetween.npos) name.remove_prefix(1);
  return NumberInText(name);
}

// Finds process ids that two workers of an instance share.
StepFinder::StepFinder(std::span<const TimelineStream> streams, ShapeFieldTable& fields)
    : streams_(streams), fields_(fields) {
  absl::flat_hash_map<Worker, const WorkerIdentity*> workers;
  for (const TimelineStream& stream : streams) {
    const StreamIdentity& identity = stream.description.identity;
    if (identity.kind != StreamKind::kNeuronCore) continue;
    const Worker worker(identity.worker.instance_id, identity.worker.pid);
    // A worker's identity includes its container and start time, which framework files do not know.
    const WorkerIdentity& first = *workers.try_emplace(worker, &identity.worker).first->second;
    if (first != identity.worker) ambiguous_.insert(worker);
  }
}

// The event type of a framework's event is its category.
std::optional<uint64_t> StepFinder::NumberOf(const TimelineRecord& record,
                                             const ShapeFields& fields) const {
  for (const std::string_view prefix : kDeviceCategoryPrefixes) {
    if (record.start().event_type.starts_with(prefix)) return std::nullopt;
  }
  const std::string_view name = StartText(record, fields, DerivedField::kName);
  auto number = ProfilerStepNumber(name);
  if (streams_[record.stream].description.identity.kind == StreamKind::kAnnotation) {
    if (number) return number;
    return AnnotatedStepNumber(name, record.start().event_type,
                               StartNumber(record, fields, DerivedField::kPayload));
  }
  return number ? number : StartNumber(record, fields, DerivedField::kStepNumber);
}

// A step waits in held_ for the executions that begin in it; one that can have none is returned at
// once.
void StepFinder::AddFrameworkStep(const TimelineRecord& record, const ShapeFields& fields,
                                  std::vector<Step>& done) {
  const auto number = NumberOf(record, fields);
  if (!number) return;
  // Without a length it is not known what the step contains.
  if ((record.flags & kInvalidLength) != 0) return;
  const StreamIdentity& identity = streams_[record.stream].description.identity;
  const uint64_t pid = identity.worker.pid != 0
                           ? identity.worker.pid
                           : StartNumber(record, fields, DerivedField::kProcess).value_or(0);
  Step step{.source = StepSource::kFramework,
            .stream = record.stream,
            .number = *number,
            .process_id = pid,
            .start_ns = record.start_ns,
            .end_ns = record.end_ns,
            .is_open = (record.flags & kOpen) != 0};
  ++counts_.framework;
  // Its times do not relate to executions, so that it need not wait for any.
  if (streams_[record.stream].description.has_own_time()) {
    ++counts_.own_time;
    done.push_back(std::move(step));
    return;
  }
  const Worker worker(identity.worker.instance_id, pid);
  if (ambiguous_.contains(worker)) {
    ++counts_.ambiguous;
    done.push_back(std::move(step));
    return;
  }
  // An entry of held_ is never removed, because it changes what the worker's executions are.
  if (held_count_ >= kHeldMax || (held_.size() >= kHeldMax && !held_.contains(worker))) {
    ++counts_.too_many;
    done.push_back(std::move(step));
    return;
  }
  held_[worker].push_back(std::move(step));
  ++held_count_;
}

// Counts in the innermost step that contains the execution's start.
void StepFinder::AddExecution(const Execution& execution, std::vector<Step>& done) {
  // The host's calls would count each execution twice.
  if (execution.source != ExecutionSource::kDevice) return;
  const WorkerIdentity& worker = streams_[execution.stream].description.identity.worker;
  const auto held = held_.find(Worker(worker.instance_id, worker.pid));
  if (held == held_.end()) {
    ++counts_.execution;
    done.push_back({.source = StepSource::kExecution,
                    .stream = execution.stream,
                    .number = execution.number,
                    .start_ns = execution.start_ns,
                    .end_ns = execution.end_ns,
                    .executions = 1,
                    .device_busy_ns = execution.busy_ns,
                    .exec_id = execution.exec_id,
                    .model_name = execution.model_name,
                    .is_open = execution.is_open});
    return;
  }
  // The latest step that has begun: steps do not overlap, and if they do, the inner one is meant.
  auto& steps = held->second;
  auto step = std::upper_bound(
      steps.begin(), steps.end(), execution.start_ns,
      [](uint64_t start_ns, const Step& other) { return start_ns < other.start_ns; });
  for (size_t i = 0; i < kOverlapMax && step != steps.begin(); ++i) {
    --step;
    if (step->end_ns <= execution.start_ns) continue;
    ++step->executions;
    step->device_busy_ns += execution.busy_ns;
    return;
  }
  ++counts_.outside;
}

// Steps come first: an execution of this batch may begin in a step of this batch.
void StepFinder::Take(const TimelineBatch& batch, std::span<const Execution> executions,
                      std::vector<Step>& done) {
  for (const TimelineRecord* record : batch.records) {
    if (record->kind != RecordKind::kSpan) continue;
    const ShapeFields& fields = fields_.Of(*record->shape);
    if (fields.type == DerivedType::kFramework) AddFrameworkStep(*record, fields, done);
  }
  for (const Execution& execution : executions) AddExecution(execution, done);
  CloseBefore(batch.end_ns, done);
}

// At the end of the reading everything is over.
void StepFinder::CloseSteps(uint64_t time_ns, std::deque<Step>& steps, std::vector<Step>& done) {
  if (time_ns == UINT64_MAX) {
    std::move(steps.begin(), steps.end(), std::back_inserter(done));
    held_count_ -= steps.size();
    steps.clear();
    return;
  }
  const auto is_over = [time_ns](uint64_t end_ns) {
    return end_ns < time_ns && time_ns - end_ns > kWaitNs;
  };
  for (size_t i = 0; i < std::min(steps.size(), kOverlapMax);) {
    // Steps are ordered by start, so that no later one is over either.
    if (!is_over(steps[i].start_ns)) return;
    if (!is_over(steps[i].end_ns)) {
      ++i;
      continue;
    }
    done.push_back(std::move(steps[i]));
    steps.erase(steps.begin() + static_cast<ptrdiff_t>(i));
    --held_count_;
  }
}

// Sorts over all workers, so that the order does not depend on the hash table.
void StepFinder::CloseBefore(uint64_t time_ns, std::vector<Step>& done) {
  // Most captures have no framework steps at all.
  if (held_count_ == 0) return;
  const auto first = static_cast<ptrdiff_t>(done.size());
  for (auto& [worker, steps] : held_) CloseSteps(time_ns, steps, done);
  std::sort(done.begin() + first, done.end(), IsBefore);
}

void StepFinder::Finish(std::vector<Step>& done) { CloseBefore(UINT64_MAX, done); }

}  // namespace neurontrace
