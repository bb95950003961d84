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
  return engine_.Judge(feed_.Conditions());
}

void TimelineInsight::PassOn() {
  const auto models = feed_.models();
  for (; models_named_ < models.size(); ++models_named_) {
    engine_.NameModel(models[models_named_].hash, models[models_named_].name);
  }
  engine_.Take(events_);
  events_.clear();
}

}  // namespace neurontrace
