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

enum class StepSource : uint8_t {
  // The framework says so: PyTorch's annotation ProfilerStep#N, or JAX's StepTraceAnnotation with
  // its argument step_num.
  kFramework,
  kExecution,  // each execution of a core is one
};

// One step of a worker (by its framework) or of a core (by its executions). Times are reference
// time. A plain value.
struct Step {
  StepSource source = StepSource::kExecution;
  uint32_t stream = 0;  // the framework's, or the core's
  uint64_t number = 0;  // N of ProfilerStep#N, step_num; Execution::number
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t executions = 0;          // that began in it, on all cores of the worker
  uint64_t device_busy_ns = 0;      // the sum of their busy time, over these cores
  std::optional<uint64_t> exec_id;  // with kExecution
  std::string model_name;           // the same
  bool is_open = false;             // its end is not known
};

struct StepCounts {
  uint64_t framework = 0;
  uint64_t execution = 0;
  // Executions of a worker with framework steps that began in none of them; or in one that more
  // steps than kOverlapMax began after.
  uint64_t outside = 0;
  // Framework steps that are given out without their executions: beyond kHeldMax, and where two
  // workers of the instance have the process id.
  uint64_t too_many = 0;
  uint64_t ambiguous = 0;
  // The same of files with times of their own, which say nothing of when executions began.
  uint64_t own_time = 0;
};

// Finds steps. Where the trace of a worker's framework has steps these are the worker's: its
// executions are counted in the one in which they begin. Everywhere else a step is one device
// execution of one core, numbered from 0 in the order of starts. Framework traces belong to the
// worker of the same instance and process id; the process id is that of the stream, and where it
// has none that of the event. Where two workers of an instance have one process id (of two
// containers, or one after the other) nothing says whose the steps are: they have no executions.
//
// One thread at a time; the streams and the table must outlive it.
class StepFinder {
 public:
  // A framework's step waits so long after its end for executions that began in it to be over.
  static constexpr uint64_t kWaitNs = 2'000'000'000;
  static constexpr size_t kHeldMax = 65'536;
  // Steps of one worker that overlap. An execution is looked for in so many that began before it,
  // the latest first: beyond, it counts as outside. So many can be under way before they keep those
  // that began after them from being given out.
  static constexpr size_t kOverlapMax = 64;

  StepFinder(std::span<const TimelineStream> streams, ShapeFieldTable& fields);

  // Takes a batch and the executions that ExecutionFinder gave out for it; appends the steps that
  // are complete.
  void Take(const TimelineBatch& batch, std::span<const Execution> executions,
            std::vector<Step>& done);
  void Finish(std::vector<Step>& done);
  const StepCounts& counts() const { return counts_; }

 private:
  using Worker = std::pair<std::string_view, uint64_t>;  // instance id, process id

  static std::optional<uint64_t> NumberOf(const TimelineRecord& record, const ShapeFields& fields);
  void NoteFrameworkStep(const TimelineRecord& record, const ShapeFields& fields,
                         std::vector<Step>& done);
  void TakeExecution(const Execution& execution, std::vector<Step>& done);
  void CloseBefore(uint64_t time_ns, std::vector<Step>& done);
  void CloseSteps(uint64_t time_ns, std::deque<Step>& steps, std::vector<Step>& done);

  std::span<const TimelineStream> streams_;
  ShapeFieldTable& fields_;
  absl::flat_hash_set<Worker> ambiguous_;
  StepCounts counts_;
  absl::flat_hash_map<Worker, std::deque<Step>> held_;  // by start; empty: it had some
  size_t held_count_ = 0;
};

// N, where the name is that of a framework's step.
std::optional<uint64_t> ProfilerStepNumber(std::string_view name);

}  // namespace neurontrace
