// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/derive/shape_fields.h"
#include "aggregator/export/exporter.h"
#include "aggregator/insight/insight_report.h"
#include "aggregator/insight/timeline_insight.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// What a format needs of a verdict or a refusal besides its figures. A plain value.
struct InsightLine {
  std::string text;       // VerdictText or RefusalText
  std::string ruled_out;  // RuledOutText of a verdict
  // Of its suspects or cores, in their order: indexes into TimelineHeader::streams.
  std::vector<uint32_t> streams;
};

// Which ranks of the exported part are slow or hung, for every format. A plain value. Times are
// those of the export.
struct CaptureAnswer {
  // False if the export leaves out event types. The report is then empty, and `text` has the
  // reason.
  bool is_judged = false;
  InsightReport report;
  std::vector<InsightLine> verdicts;  // one for each of report.verdicts
  std::vector<InsightLine> refusals;  // one for each of report.refusals
  std::string text;                   // ReportText, and limits that were reached
};

// Judges the part of a capture that an exporter reads, beside its other work. Memory is that of
// InsightEngine. Used by one thread at a time; the header must outlive it.
class ExportInsight {
 public:
  explicit ExportInsight(const TimelineHeader& header);

  // Takes the next batch, in the timeline's order and with the header's numbers of streams.
  void Take(const TimelineBatch& batch);
  // Called once, after the last batch.
  CaptureAnswer Finish();

 private:
  // Returns the streams of cores of the report, in their order.
  std::vector<uint32_t> StreamsOf(const std::vector<uint32_t>& cores) const;

  bool selects_cores_ = false;  // by the filter
  ShapeFieldTable fields_;
  // nullopt: the export leaves out event types, and a missing event must not look like idle time.
  std::optional<TimelineInsight> insight_;
};

}  // namespace neurontrace
