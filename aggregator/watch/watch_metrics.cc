// SPDX-License-Identifier: Apache-2.0
#include "aggregator/watch/watch_metrics.h"

namespace neurontrace {
namespace {

constexpr char kDroppedEvents[] = "neurontrace_watch_events_dropped_total";
constexpr char kDroppedEventsHelp[] =
    "Events of watches that the rule did not see, by reason; their cores are judged without them";

prometheus::Counter& DroppedEvents(prometheus::Registry& registry, const char* reason) {
  return MakeCounterFamily(registry, kDroppedEvents, kDroppedEventsHelp).Add({{"reason", reason}});
}

}  // namespace

WatchMetrics::WatchMetrics(prometheus::Registry& registry)
    : cores(MakeGauge(registry, "neurontrace_watch_cores", "Cores of all watches")),
      refused_cores(MakeGauge(registry, "neurontrace_watch_refused_cores",
                              "Cores of watches that the last judgement refused to judge")),
      memory_bytes(MakeGauge(registry, "neurontrace_watch_memory_bytes",
                             "Memory of the cores of all watches")),
      queue_chunks(MakeGauge(registry, "neurontrace_watch_queue_chunks",
                             "Stored chunks of watches that wait to be read")),
      dropped_chunks(MakeCounter(registry, "neurontrace_watch_dropped_chunks_total",
                                 "Chunks of watches that no verdict is made of, because the queue "
                                 "was full; they are stored")),
      cores_not_judged(MakeCounter(registry, "neurontrace_watch_cores_not_judged_total",
                                   "Chunks of cores and jobs beyond the limits of watches")),
      verdicts_not_followed(MakeCounter(registry, "neurontrace_watch_verdicts_not_followed_total",
                                        "Verdicts beyond the limit of one job")),
      read_seconds(MakeCounter(registry, "neurontrace_watch_read_seconds_total",
                               "Time spent on reading chunks of watches")),
      judge_seconds(MakeCounter(registry, "neurontrace_watch_judge_seconds_total",
                                "Time spent on judging watches")),
      events_(MakeCounter(registry, "neurontrace_watch_events_total",
                          "Events of watches that verdicts are made of")),
      late_(DroppedEvents(registry, "late")),
      unmatched_(DroppedEvents(registry, "unmatched")),
      forgotten_(DroppedEvents(registry, "forgotten")) {
  auto& begun = MakeCounterFamily(registry, "neurontrace_verdicts_total",
                                  "Verdicts that began while the fleet ran, by kind");
  auto& current =
      MakeGaugeFamily(registry, "neurontrace_verdicts_current", "Verdicts at present, by kind");
  for (auto kind = static_cast<int>(VerdictKind::kSlowCore);
       kind <= static_cast<int>(VerdictKind::kDeviceError); ++kind) {
    const auto each = static_cast<VerdictKind>(kind);
    begun_[each] = &begun.Add({{"kind", VerdictKindName(each)}});
    current_[each] = &current.Add({{"kind", VerdictKindName(each)}});
  }
}

void WatchMetrics::CountVerdict(VerdictKind kind) { begun_.at(kind)->Increment(); }

void WatchMetrics::SetVerdicts(const std::map<VerdictKind, uint32_t>& counts) {
  for (const auto& [kind, gauge] : current_) {
    const auto count = counts.find(kind);
    gauge->Set(count == counts.end() ? 0 : count->second);
  }
}

void WatchMetrics::SetCounters(const CoreFeed::Counters& sums) {
  RaiseCounter(events_, static_cast<double>(sums.events));
  RaiseCounter(late_, static_cast<double>(sums.late));
  RaiseCounter(unmatched_, static_cast<double>(sums.unmatched));
  RaiseCounter(forgotten_, static_cast<double>(sums.forgotten));
}

}  // namespace neurontrace
