// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "aggregator/derive/capture_summary_builder.h"
#include "aggregator/derive/summary.h"
#include "aggregator/export/export_insight.h"
#include "aggregator/export/exporter.h"

namespace neurontrace {

// Reads a whole timeline and writes which ranks are slow, and its figures, at the end: as text for
// people, or as JSON with the capture and its certificate for programs. docs/formats/summary.md
// defines both. Writes nothing before Finish. Memory is that of CaptureSummaryBuilder and
// ExportInsight, whatever the capture's size. Used by one thread at a time; the sink must outlive
// it.
class SummaryExporter : public Exporter {
 public:
  enum class Form : uint8_t { kText, kJson };

  // `capture_json` is the object "capture"; if it is empty, one is made of what the timeline knows.
  SummaryExporter(Form form, std::string capture_json, ByteSink& sink)
      : form_(form), capture_json_(std::move(capture_json)), sink_(sink) {}

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Write(const TimelineBatch& batch) override;
  absl::Status Finish(ExportSummary& summary) override;
  uint64_t bytes_written() const override { return bytes_written_; }

 private:
  // Returns the whole file of the form kJson.
  std::string JsonFile(const CaptureSummary& figures, const CaptureAnswer& answer) const;

  const Form form_;
  const std::string capture_json_;
  ByteSink& sink_;
  const TimelineHeader* header_ = nullptr;
  // Set by Begin.
  std::optional<CaptureSummaryBuilder> builder_;
  std::optional<ExportInsight> insight_;
  // The size of the file once it is written, and 0 until then.
  uint64_t bytes_written_ = 0;
};

}  // namespace neurontrace
