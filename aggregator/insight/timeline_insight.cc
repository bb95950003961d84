// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/timeline_insight.h"

namespace neurontrace {

void TimelineInsight::Take(const TimelineBatch& batch) {
  feed_.Take(batch, events_);
  PassOn();
}

InsightReport TimelineInsight::Finish() {
  feed_.Finish(events_);
  PassOn();
  return judge_.Finish(feed_.Conditions());
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
