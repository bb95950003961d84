// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/derive/shape_fields.h"
#include "aggregator/view/heat_matrix.h"
#include "aggregator/view/view_collector.h"

namespace neurontrace {

class DigestFeed;
struct DigestedSums;

// How busy each stream is in each column of a window: the heat map of ranks by time. Take returns
// the map. Used by one thread at a time.
class BusyMap final : public SourceCollector {
 public:
  enum class Metric : uint8_t {
    kBusy,    // share of the column in which a span runs: on the hardware, if the stream has any
    kWait,    // share of the column in which a collective or a barrier runs
    kEvents,  // events that begin in the column
  };
  using Window = HeatWindow;
  // `digests`, made with DigestUse::kBins, have the events of chunks that are not read; nullptr:
  // all are read. Must outlive this.
  BusyMap(Metric metric, const Window& window, DigestFeed* digests = nullptr);

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Finish(ExportSummary& summary) override;

  // Returns the answer of `heat` in docs/formats/view_api.md. Columns outside the time that is
  // known of a stream are not a number. Requires that the export is finished.
  std::string Take(const HeatShape& shape = {}) const {
    return EncodeHeat(answer_, *matrix_, shape);
  }

 private:
  // Covered nanoseconds by column, and up to where they are counted.
  struct Cover {
    std::vector<float> ns;
    uint64_t until_ns = 0;
    void Add(const Window& window, uint64_t begin_ns, uint64_t end_ns);
    // Adds this share of [begin_ns, end_ns).
    void AddShare(const Window& window, uint64_t begin_ns, uint64_t end_ns, double share);
  };
  struct Row {
    Cover hardware;
    Cover other;
    std::vector<float> events;
  };

  absl::Status WriteEvent(const TimelineRecord& record, uint64_t number,
                          const Placement& placement) override;
  // Adds everything of digests that begins no later than this.
  void AddDigestedBefore(uint64_t start_ns);
  void AddCovers(const DigestedSums& sums);
  void AddBegun(const DigestedSums& sums);
  void CountEvents(Row& row, uint64_t at_ns, uint64_t count) const;
  // Puts the values of a stream into its row of the matrix.
  void FillRow(const TimelineStream& stream, const Row& row, size_t matrix_row);

  const Metric metric_;
  ShapeFieldTable fields_;
  const Window window_;
  DigestFeed* const digests_;
  std::vector<Row> map_;  // by stream
  std::optional<HeatMatrix> matrix_;
  HeatAnswer answer_;
};

// Returns the metric's name in questions and answers.
std::string_view NameOf(BusyMap::Metric metric);

}  // namespace neurontrace
