// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/summary/summary_exporter.h"

#include <fmt/format.h>

#include "aggregator/export/json/json_text.h"
#include "aggregator/export/summary/summary_json.h"
#include "aggregator/export/summary/summary_text.h"

namespace neurontrace {

absl::Status SummaryExporter::Begin(const TimelineHeader& header) {
  header_ = &header;
  builder_.emplace(*header.capture, header.streams, *header.filter);
  for (const EarlierPreparation& earlier : header.earlier) {
    builder_->NotePreparation(earlier.stream, earlier.exec_id, earlier.start_ns,
                              earlier.model_name);
  }
  return absl::OkStatus();
}

absl::Status SummaryExporter::Write(const TimelineBatch& batch) {
  builder_->Take(batch);
  return absl::OkStatus();
}

// A field a line, so that people can look into it.
std::string SummaryExporter::JsonFile(const CaptureSummary& figures) const {
  std::string capture = capture_json_;
  if (capture.empty()) {
    capture = fmt::format("{{\"capture_id\":\"{}\"", header_->capture->id.ToString());
    AppendJsonText("name", header_->capture->name, capture);
    capture += '}';
  }
  std::string text =
      fmt::format("{{\"format_version\":1,\n\"producer\":\"neurontrace {}\"", NEURONTRACE_VERSION);
  text += ",\n\"capture\":" + capture;
  if (!header_->certificate_json.empty()) {
    text += ",\n\"certificate\":";
    text += header_->certificate_json;
  }
  return text + ",\n\"summary\":" + SummaryJson(figures) + "}\n";
}

absl::Status SummaryExporter::Finish(ExportSummary& summary) {
  CaptureSummary figures = builder_->Finish();
  figures.counts = summary.counts;
  if (form_ == Form::kJson) {
    // The text has them among what the certificate says, which stands by itself here.
    figures.warnings.insert(figures.warnings.end(), summary.warnings.begin(),
                            summary.warnings.end());
  }
  const std::string text =
      form_ == Form::kJson ? JsonFile(figures) : SummaryText(figures, *header_, summary.warnings);
  bytes_written_ = text.size();
  return sink_.Write(text);
}

}  // namespace neurontrace
