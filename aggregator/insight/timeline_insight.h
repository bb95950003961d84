// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/derive/shape_fields.h"
#include "aggregator/insight/insight_engine.h"
#include "aggregator/insight/insight_report.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// Feeds an InsightEngine with the records of a timeline. Each selected stream of a core is a core
// of the engine. Used by one thread at a time; the streams and the table must outlive it.
class TimelineInsight {
 public:
  TimelineInsight(std::span<const TimelineStream> streams, ShapeFieldTable& fields);

  // Takes the next batch, in the timeline's order.
  void Take(const TimelineBatch& batch);
  // Returns the answer for all that was taken; its times are reference time. Called once.
  InsightReport Finish();

  std::span<const InsightCore> cores() const { return engine_.cores(); }
  // Returns the stream of a core of the report: an index into the streams.
  uint32_t StreamOf(uint32_t core) const { return stream_of_[core]; }

 private:
  std::span<const TimelineStream> streams_;
  ShapeFieldTable& fields_;
  InsightEngine engine_;
  std::vector<uint32_t> stream_of_;  // by core
};

}  // namespace neurontrace
