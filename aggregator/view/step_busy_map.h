// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/derive/collectives.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/view/barrier_steps.h"
#include "aggregator/view/busy_map.h"
#include "aggregator/view/heat_matrix.h"
#include "aggregator/view/step_axis.h"
#include "aggregator/view/view_collector.h"

namespace neurontrace {

// The metrics of BusyMap in columns by step, for cores. A step of a core lasts from leaving one
// matched barrier to leaving the next (BarrierSteps), so that the waiting in a barrier belongs to
// the step that it ends; the first begins with the core's first event. What follows the last
// barrier is in no step. Columns of several steps have the largest value.
//
// RunExporter fills it, and Take then returns the map. Used by one thread at a time.
class StepBusyMap final : public SourceCollector {
 public:
  StepBusyMap(BusyMap::Metric metric, const HeatWindow& window);

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Finish(ExportSummary& summary) override;

  // Returns the answer of `heat` in docs/formats/view_api.md. Requires that the export is finished.
  std::string Take(const HeatShape& shape) const { return EncodeHeat(answer_, *matrix_, shape); }

 private:
  enum Source : uint8_t { kHardware, kOther };
  // The time from the end of one of a core's barriers to the end of the next, matched or not.
  struct Stretch {
    uint64_t barrier_ns = 0;         // when the core arrived at the barrier that ends it
    uint64_t end_ns = UINT64_MAX;    // when it left; UINT64_MAX: no barrier has ended it yet
    std::optional<uint64_t> number;  // of the step, once the barrier is matched
    std::array<uint64_t, 2> covered_ns = {};  // by Source
    uint64_t events = 0;
  };
  struct CoreState {
    uint64_t begin_ns = UINT64_MAX;            // of the first stretch; UINT64_MAX: no event yet
    std::array<uint64_t, 2> until_ns = {};     // up to where time is covered, by Source
    std::deque<Stretch> stretches{Stretch{}};  // never empty; the last one is open
    bool has_hardware = false;
  };

  absl::Status WriteEvent(const TimelineRecord& record, uint64_t number,
                          const Placement& placement) override;
  absl::Status EndBatch(const TimelineBatch& batch) override;
  void Cover(CoreState& core, Source source, uint64_t begin_ns, uint64_t end_ns) const;
  // Ends the core's last stretch at the end of a barrier.
  static void Cut(CoreState& core, const TimelineRecord& barrier);
  // Gives the stretches that the closed barriers ended their steps.
  void NumberSteps();
  // Puts the values of steps into the matrix that no event from `now_ns` on can change.
  void Settle(uint32_t stream, uint64_t now_ns);

  const BusyMap::Metric metric_;
  ShapeFieldTable fields_;
  std::optional<CollectiveFinder> finder_;
  std::vector<Collective> closed_;
  std::optional<BarrierSteps> steps_;
  StepAxis axis_;
  std::vector<CoreState> cores_;  // by stream
  std::vector<uint32_t> row_of_;  // by stream
  std::optional<HeatMatrix> matrix_;
  HeatAnswer answer_;
};

}  // namespace neurontrace
