// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/derive/shape_fields.h"
#include "aggregator/insight/insight_feed.h"
#include "aggregator/insight/insight_report.h"
#include "aggregator/insight/windowed_judge.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// Judges a timeline: a WindowedJudge with the events of an InsightFeed. Used by one thread at a
// time; the streams and the table must outlive it.
class TimelineInsight {
 public:
  TimelineInsight(std::span<const TimelineStream> streams, ShapeFieldTable& fields,
                  InsightFeed::Facts facts = {})
      : feed_(streams, fields, std::move(facts)),
        judge_({feed_.cores().begin(), feed_.cores().end()}, feed_.Losses()) {}

  // Takes a preparation from before the first batch, see ExecutionFinder.
  void RecordPreparation(uint32_t stream, uint64_t exec_id, uint64_t start_ns,
                         std::string_view model_name) {
    feed_.RecordPreparation(stream, exec_id, start_ns, model_name);
  }
  // Takes the next batch, in the timeline's order.
  void Take(const TimelineBatch& batch);
  // Returns the answer for all that was taken; its times are reference time. Called once.
  InsightReport Finish();

  std::span<const InsightCore> cores() const { return feed_.cores(); }
  // Returns the stream of a core of the report: an index into the streams.
  uint32_t StreamOf(uint32_t core) const { return feed_.StreamOf(core); }
  // Returns a sentence for each limit that was reached and each clock that was mixed.
  std::vector<std::string> Warnings() const { return feed_.Warnings(); }

 private:
  void PassOn();

  InsightFeed feed_;
  WindowedJudge judge_;
  std::vector<InsightEvent> events_;  // of one batch; keeps its memory
  size_t models_named_ = 0;
};

}  // namespace neurontrace
