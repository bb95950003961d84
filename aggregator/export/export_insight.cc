// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/export_insight.h"

#include <utility>

#include "aggregator/insight/verdict_text.h"

namespace neurontrace {

ExportInsight::ExportInsight(const TimelineHeader& header) {
  const TimelineFilter& filter = *header.filter;
  // A job is judged by itself, so that the others are not missing.
  selects_cores_ = !filter.instance_ids.empty() || !filter.neuron_cores.empty() ||
                   !filter.worker_gids.empty() || !filter.streams.empty();
  if (!header.filter->event_types.selects_all()) return;
  insight_.emplace(header.streams, fields_,
                   InsightFeed::Facts{.window_start_ns = header.filter->window_start_ns,
                                      .window_end_ns = header.filter->window_end_ns});
  for (const EarlierPreparation& earlier : header.earlier) {
    insight_->RecordPreparation(earlier.stream, earlier.exec_id, earlier.start_ns,
                                earlier.model_name);
  }
}

void ExportInsight::Take(const TimelineBatch& batch) {
  if (insight_) insight_->Take(batch);
}

std::vector<uint32_t> ExportInsight::StreamsOf(const std::vector<uint32_t>& cores) const {
  std::vector<uint32_t> streams;
  streams.reserve(cores.size());
  for (const uint32_t core : cores) streams.push_back(insight_->StreamOf(core));
  return streams;
}

CaptureAnswer ExportInsight::Finish() {
  CaptureAnswer answer;
  if (!insight_) {
    answer.text =
        "not judged: the export leaves out event types; export without --event-type to know which "
        "ranks are slow";
    return answer;
  }
  answer.is_judged = true;
  answer.report = insight_->Finish();
  const auto cores = insight_->cores();
  for (const Verdict& verdict : answer.report.verdicts) {
    answer.verdicts.push_back({.text = VerdictText(verdict, cores),
                               .ruled_out = RuledOutText(verdict),
                               .streams = StreamsOf(verdict.suspects)});
  }
  for (const Refusal& refusal : answer.report.refusals) {
    answer.refusals.push_back({.text = RefusalText(refusal, cores),
                               .ruled_out = {},
                               .streams = StreamsOf(refusal.cores)});
  }
  answer.text = ReportText(answer.report, cores);
  // Who waits for a rank that was left out looks like who has nothing to wait for.
  if (selects_cores_) answer.text += "; the export leaves out ranks, which were not judged";
  // Not among the export's warnings: what the rule did not use is in the export all the same.
  for (const std::string& warning : insight_->Warnings()) answer.text += "; " + warning;
  return answer;
}

}  // namespace neurontrace
