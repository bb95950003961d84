// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/timeline_insight.h"

#include <algorithm>
#include <iterator>

#include "aggregator/insight/absent_ranks.h"

namespace neurontrace {

void TimelineInsight::Take(const TimelineBatch& batch) {
  feed_.Take(batch, events_);
  PassOn();
}

InsightReport TimelineInsight::Finish() {
  feed_.Finish(events_);
  PassOn();
  InsightReport report = judge_.Finish(feed_.Conditions());
  std::ranges::move(FindAbsentRanks(feed_.cores(), feed_.silent()),
                    std::back_inserter(report.refusals));
  return report;
}

void TimelineInsight::PassOn() {
  const auto models = feed_.models();
  for (; models_named_ < models.size(); ++models_named_) {
    judge_.NameModel(models[models_named_].hash, models[models_named_].name);
  }
  for (const InsightEvent& event : events_) judge_.Take(event);
  events_.clear();
}

}  // namespace neurontrace
