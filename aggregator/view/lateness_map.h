// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/derive/collectives.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/export/exporter.h"
#include "aggregator/view/barrier_steps.h"
#include "aggregator/view/heat_matrix.h"
#include "aggregator/view/step_axis.h"
#include "aggregator/view/time_sample.h"

namespace neurontrace {

// How late each core arrives at its collectives and barriers: its arrival minus the median arrival
// of the same collective, in nanoseconds, negative if it is early. A cell has the worst value of
// its collectives and the bound of that difference: the errors of both clocks together. It is where
// a core arrives, not why: the cause may be elsewhere.
//
// Compared are collectives of at least two cores that can have met (CollectiveFinder), of one job.
// An exporter without files: RunExporter fills it, and Take then returns the map. Used by one
// thread at a time.
class LatenessMap final : public Exporter {
 public:
  // kTime: the column of the arrival. kStep: the column of the step of BarrierSteps.
  enum class By : uint8_t { kTime, kStep };
  // Collectives that are not wholly in one stretch of the sample are left out.
  LatenessMap(By by, const HeatWindow& window, const TimeSample& sample = {})
      : by_(by), sample_(sample), axis_(window.columns) {
    answer_ = {.metric = "late", .unit = "ns", .window = window};
  }

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Write(const TimelineBatch& batch) override;
  absl::Status Finish(ExportSummary& summary) override;
  uint64_t bytes_written() const override { return 0; }
  bool reads_before_window() const override { return false; }

  // Returns the answer of `heat` in docs/formats/view_api.md. Requires that the export is finished.
  std::string Take(const HeatShape& shape) const { return EncodeHeat(answer_, *matrix_, shape); }

 private:
  // Adds the collectives that are complete.
  void AddClosed();
  void Add(const Collective& collective);
  // Returns why no cell is known.
  std::string ExplainEmpty() const;

  const By by_;
  const TimeSample sample_;
  ShapeFieldTable fields_;
  std::optional<CollectiveFinder> finder_;
  std::vector<Collective> closed_;
  std::optional<BarrierSteps> steps_;
  StepAxis axis_;
  std::vector<uint32_t> row_of_;  // by stream
  std::optional<HeatMatrix> matrix_;
  HeatAnswer answer_;
};

// Returns facts that keep the jobs of a capture apart: the name of each stream's job.
CommunicatorFacts JobFacts(const TimelineHeader& header);

}  // namespace neurontrace
