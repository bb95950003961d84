// SPDX-License-Identifier: Apache-2.0
#include "agent/triggers/trigger_reports.h"

#include "lib/base/clean_text.h"
#include "lib/trace/limits.h"
#include "lib/trace/trigger_limits.h"

namespace neurontrace {

TriggerReports::Outcome TriggerReports::Report(TriggerFired fired) {
  const uint64_t now_ns = clock_.MonotonicNs();
  while (!by_time_.empty() && now_ns - by_time_.front().first >= limits::kTriggerReportIntervalNs) {
    lately_.erase(by_time_.front().second);
    by_time_.pop_front();
  }
  // A rule that fires for each event would fill the control connection; one report a second says as
  // much.
  Key key(fired.rule, fired.worker);
  // The second condition bounds memory; it suppresses reports rather than forgetting some.
  if (lately_.contains(key) || lately_.size() >= limits::kTriggerReportsKeptMax) {
    ++counters_.suppressed;
    return Outcome::kSuppressed;
  }
  // The text comes from a worker or an HTTP client and is shown on terminals.
  fired.cause = CleanText(fired.cause, limits::kDetailBytesMax);
  fired.host_realtime_ns = clock_.RealtimeNs();
  if (!sink_.ReportTrigger(fired)) {
    ++counters_.undelivered;
    return Outcome::kUndelivered;
  }
  ++counters_.fired;
  lately_.insert(key);
  by_time_.emplace_back(now_ns, std::move(key));
  return Outcome::kReported;
}

}  // namespace neurontrace
