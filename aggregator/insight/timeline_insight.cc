// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/timeline_insight.h"

#include <fmt/format.h>

#include "aggregator/insight/insight_rule.h"

namespace neurontrace {

void TimelineInsight::Take(const TimelineBatch& batch) {
  feed_.Take(batch, events_);
  PassOn();
}

InsightReport TimelineInsight::Finish() {
  feed_.Finish(events_);
  PassOn();
  InsightReport report = engine_.Judge(feed_.Conditions());
  // A running capture is judged as it goes, so that only here something is never judged.
  if (const uint64_t replaced = engine_.executions_replaced(); replaced > 0) {
    report.refusals.push_back(
        {.reason = RefusalReason::kLimit,
         .count = replaced,
         .missing = fmt::format("Earlier executions of the window: only the last {} of each core "
                                "are judged; choose an earlier window for them.",
                                insight_rule::kExecutionsKept)});
  }
  return report;
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
