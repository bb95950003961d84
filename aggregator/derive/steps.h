// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "aggregator/derive/executions.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// Where a step comes from.
enum class StepSource : uint8_t {
  // The framework marks it: PyTorch by the annotation ProfilerStep#N, JAX by StepTraceAnnotation
  // with its argument step_num, an annotation by its name or payload.
  kFramework,
  // Each device execution of a core is a step.
  kExecution,
};

// One step of a worker (by its framework) or of a core (by its executions). Times are reference
// time. A plain value.
struct Step {
  StepSource source = StepSource::kExecution;
  // The framework's, or the core's.
  uint32_t stream = 0;
  // N of ProfilerStep#N or "step N", step_num, a payload, or Execution::number.
  uint64_t number = 0;
  // Of the worker, with kFramework only; 0 if it is not known.
  uint64_t process_id = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  // Executions that began in it, on all cores of the worker.
  uint64_t executions = 0;
  // The sum of their busy times over these cores.
  uint64_t device_busy_ns = 0;
  // With kExecution only, as model_name.
  std::optional<uint64_t> exec_id;
  std::string model_name;  // the same
  bool is_open = false;    // its end is not known
};

// Counts of steps unless stated otherwise.
struct StepCounts {
  uint64_t framework = 0;
  uint64_t execution = 0;
  // Executions of a worker with framework steps that began in none of them, or in one after which
  // more than kOverlapMax further steps began.
  uint64_t outside = 0;
  // Framework steps that are returned without their executions: beyond kHeldMax, if two workers of
  // the instance have the process id, and in files with times of their own.
  uint64_t too_many = 0;
  uint64_t ambiguous = 0;
  // These times do not relate to when executions began.
  uint64_t own_time = 0;
};

// Finds steps. If the trace of a worker's framework has steps, these are the worker's, and each
// execution counts in the one in which it begins. Otherwise each device execution of a core is a
// step, numbered from 0 in the order of starts.
//
// Framework traces belong to the worker with the same instance and process id; the process id is
// that of the stream or, if it has none, of the event. If two workers of an instance have one
// process id (in two containers, or one after the other), it is not known whose the steps are, and
// they have no executions. docs/formats/derived.md defines the figures.
//
// Used by one thread at a time; the streams and the table must outlive it.
class StepFinder {
 public:
  // How long after its end a framework's step waits for executions that began in it to end.
  static constexpr uint64_t kWaitNs = 2'000'000'000;
  // Framework steps that wait, and workers that have some.
  static constexpr size_t kHeldMax = 65'536;
  // Steps of one worker that may overlap. An execution is looked for in this many steps that began
  // before it, the latest first; beyond, it counts as outside. If more are under way, those that
  // began later are returned late.
  static constexpr size_t kOverlapMax = 64;

  StepFinder(std::span<const TimelineStream> streams, ShapeFieldTable& fields);

  // Takes the next batch and the executions that ExecutionFinder returned for it. Appends the steps
  // that are complete. Both must be of the same batch.
  void Take(const TimelineBatch& batch, std::span<const Execution> executions,
            std::vector<Step>& done);
  // Appends the remaining steps. Called once, after the last batch.
  void Finish(std::vector<Step>& done);
  const StepCounts& counts() const { return counts_; }

 private:
  using Worker = std::pair<std::string_view, uint64_t>;  // instance id, process id

  // Returns the number of the step that a framework's event or an annotation marks, or nullopt if
  // it marks none.
  std::optional<uint64_t> NumberOf(const TimelineRecord& record, const ShapeFields& fields) const;
  // Holds the step that a framework's event marks until its executions are known.
  void AddFrameworkStep(const TimelineRecord& record, const ShapeFields& fields,
                        std::vector<Step>& done);
  // Counts the execution in its worker's step, or makes a step of it.
  void AddExecution(const Execution& execution, std::vector<Step>& done);
  // Appends the steps of all workers that nothing can change after this time, ordered.
  void CloseBefore(uint64_t time_ns, std::vector<Step>& done);
  // Appends the steps of one worker that are over and have waited long enough.
  void CloseSteps(uint64_t time_ns, std::deque<Step>& steps, std::vector<Step>& done);

  std::span<const TimelineStream> streams_;
  ShapeFieldTable& fields_;
  // Workers whose process id is not unique on their instance.
  absl::flat_hash_set<Worker> ambiguous_;
  StepCounts counts_;
  // Waiting steps by start. An empty entry means that the worker had steps, so that its executions
  // are not steps of their own.
  absl::flat_hash_map<Worker, std::deque<Step>> held_;
  // Steps in held_, over all workers.
  size_t held_count_ = 0;
};

// Returns N for "ProfilerStep#N", or nullopt for any other name.
std::optional<uint64_t> ProfilerStepNumber(std::string_view name);

// Returns the number of the step that an annotated range marks, or nullopt if it marks none. It
// marks one if its name is "step" and a number ("step 12", "Step#12", "step_12"), or if its name or
// its category is "step" and `payload` is a whole number. Letters may be of either case.
std::optional<uint64_t> AnnotatedStepNumber(std::string_view name, std::string_view category,
                                            std::optional<uint64_t> payload);

}  // namespace neurontrace
