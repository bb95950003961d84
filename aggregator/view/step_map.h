// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/derive/collectives.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/derive/steps.h"
#include "aggregator/export/exporter.h"
#include "aggregator/view/barrier_steps.h"
#include "aggregator/view/heat_matrix.h"
#include "aggregator/view/step_axis.h"
#include "aggregator/view/time_sample.h"

namespace neurontrace {

// How much longer each core's steps take than the median of the same step, in nanoseconds, negative
// if shorter. Steps are those of the framework (StepFinder) where two workers of a job have the
// same ones. Otherwise a step is the stretch between two matched barriers (BarrierSteps), without
// the time in them, so that who waits for others has no longer steps because of it.
//
// A length comes from one clock, whose offset cancels out: the bound of a difference is only that
// of the devices' clocks, and 0 for steps that hosts stamped. An exporter without files:
// RunExporter fills it, and Take then returns the map. Used by one thread at a time.
class StepMap final : public Exporter {
 public:
  // kTime: a step has every column that it touches. kStep: it has its own.
  enum class By : uint8_t { kTime, kStep };
  // Steps between barriers that are not wholly in one stretch of the sample are left out. The last
  // is how many steps of frameworks are kept; a test sets fewer.
  explicit StepMap(By by, const HeatWindow& window, const TimeSample& sample = {},
                   size_t framework_steps_max = limits::kViewFrameworkStepsMax)
      : by_(by), sample_(sample), framework_steps_max_(framework_steps_max), axis_(window.columns) {
    answer_ = {.metric = "step", .unit = "ns", .window = window};
  }

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Write(const TimelineBatch& batch) override;
  absl::Status Finish(ExportSummary& summary) override;
  uint64_t bytes_written() const override { return 0; }
  bool reads_before_window() const override { return false; }

  // Returns the answer of `heat` in docs/formats/view_api.md. Requires that the export is finished.
  std::string Take(const HeatShape& shape) const { return EncodeHeat(answer_, *matrix_, shape); }

 private:
  using WorkerKey = std::pair<std::string_view, uint64_t>;  // instance id, process id
  using Job = std::pair<std::string, int64_t>;              // name, world size
  // The cores of a worker of the capture.
  struct Worker {
    const WorkerIdentity* identity = nullptr;
    std::vector<uint32_t> rows;
    size_t job = 0;  // index of its job in the order of appearance
    // Two workers have this process id: it is not known whose a framework's steps are.
    bool is_ambiguous = false;
  };
  struct FrameworkStep {
    size_t worker = 0;  // index into workers_
    uint64_t number = 0;
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    bool has_own_time = false;
  };
  // A core's length of the step that a barrier ends.
  struct BarrierStep {
    uint64_t since = 0;  // the barrier that began it
    uint64_t length_ns = 0;
    const CollectiveMember* member = nullptr;
  };

  void FindWorkers(const TimelineHeader& header);
  // Keeps or counts the steps that StepFinder returned.
  void AddFrameworkSteps();
  void AddBarriers();
  void AddBarrier(const Collective& barrier);
  // Adds the steps of cores that left the same barrier last, sorted by length.
  void Compare(uint64_t number, std::vector<BarrierStep>::const_iterator begin,
               std::vector<BarrierStep>::const_iterator end);
  // Replaces the matrix by the frameworks' steps, and returns true, if any two are of the same
  // step.
  bool UseFrameworkSteps();
  void AddWarnings();

  const By by_;
  const TimeSample sample_;
  const size_t framework_steps_max_;
  ShapeFieldTable fields_;
  const TimelineHeader* header_ = nullptr;  // until Finish
  std::optional<StepFinder> framework_finder_;
  std::vector<Step> found_;
  std::optional<CollectiveFinder> collective_finder_;
  std::vector<Collective> closed_;
  std::optional<BarrierSteps> barrier_steps_;
  std::vector<BarrierStep> lengths_;  // of the barrier at hand
  std::map<WorkerKey, size_t> worker_of_;
  std::vector<Worker> workers_;
  std::vector<FrameworkStep> framework_steps_;
  uint64_t steps_unplaced_ = 0;  // of workers that are not in the capture, or are ambiguous
  uint64_t steps_beyond_ = 0;    // beyond framework_steps_max_
  StepAxis axis_;
  std::vector<uint32_t> row_of_;  // by stream
  std::optional<HeatMatrix> matrix_;
  HeatAnswer answer_;
};

}  // namespace neurontrace
