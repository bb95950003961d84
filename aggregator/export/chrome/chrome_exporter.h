// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/derive/framework_links.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/rows/event_attributes.h"
#include "aggregator/export/rows/row_exporter.h"
#include "aggregator/export/waiting_spans.h"

namespace neurontrace {

// Pieces of trace-event JSON that are not plain JSON: docs/formats/chrome_json.md.

// Nanoseconds as the format's microseconds, three digits behind the point: "-1.500".
void AppendMicroseconds(int64_t ns, std::string& out);

// ,"name":value of an argument. Whole numbers that a double cannot hold become texts.
void AppendArgument(const EventAttribute& attribute, std::string& out);
// The value alone.
void AppendArgumentValue(const EventAttribute& attribute, std::string& out);

// ,"name":value of a counter: a number whatever it costs in digits.
void AppendCounterValue(std::string_view name, const ShapeKey& key, uint64_t value,
                        std::string& out);

// Writes a timeline as trace-event JSON, for chrome://tracing and whatever else reads it;
// docs/formats/chrome_json.md has every key. One event a line, in the order of start but for spans
// whose stop lies in a later chunk. One thread at a time.
class ChromeExporter final : public RowExporter {
 public:
  struct Options {
    Grouping grouping;
    bool no_flows = false;
  };
  ChromeExporter(Options options, ByteSink& sink)
      : RowExporter(std::move(options.grouping), options.no_flows), sink_(sink) {}

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Finish(ExportSummary& summary) override;
  uint64_t bytes_written() const override { return bytes_flushed_ + out_.size(); }

 private:
  struct Lines {
    std::string head;  // of an event, up to its arguments
    std::string arguments;
    std::string after;  // whole events that belong behind it
  };

  void StartBatch(const TimelineBatch&) override { points_.clear(); }
  uint32_t Placed(const TimelineRecord& record, uint64_t number, Placement& placement) override;
  // The arrows of framework files, under ids of our own. Readers connect a point to the span of
  // its thread that they read last: so a point has its span's begin for its time, and stands right
  // behind it, where the span is still to be written.
  void PlaceArrows() override;
  absl::Status WriteStop(const TimelineRecord& record) override;
  absl::Status WriteHostCounter(const TimelineRecord& record) override;
  absl::Status WriteCounter(const TimelineRecord& record) override;
  absl::Status WriteEvent(const TimelineRecord& record, uint64_t number,
                          const Placement& placement) override;
  absl::Status FlushIfLarge() override;
  absl::Status EndBatch(const TimelineBatch& batch) override;

  void WriteSpan(const TimelineRecord& record, uint64_t number, const Placement& placement);
  void WriteInstant(const TimelineRecord& record, uint32_t row);
  struct ArrowPoint {
    char phase = 's';
    uint64_t id = 0;
    uint64_t at_ns = 0;
    uint64_t behind = 0;  // the number of the record that it follows
  };
  void WritePoint(const ArrowPoint& point, const ArrowSpan& span, std::string_view category);
  void WriteLosses();
  void WriteCertificate(uint64_t at_ns);
  void AppendOtherData(const std::vector<std::string>& warnings);
  // {"ph":…,"name":…,"cat":…,"pid":…,"tid":…,"ts":…
  void AppendHead(std::string_view phase, std::string_view name, std::string_view category,
                  uint64_t at_ns, std::string& out);
  void AppendArrows(const TimelineRecord& record, std::string& out);
  void AppendArguments(const std::vector<EventAttribute>& attributes, std::string& out);
  // Of a stop that comes apart from its start.
  void AppendStopArguments(const std::vector<EventAttribute>& attributes, std::string& out);
  // The numbers of processes and lanes in the file; what is new is described first.
  uint32_t PidOf(uint32_t process);
  uint32_t TidOf(uint32_t row, uint32_t lane);
  void Describe(std::string_view kind, std::string_view text, bool is_number);
  void Emit(const Lines& lines);
  void Line(std::string_view text);
  absl::Status Flush();
  int64_t Since(uint64_t ns) const { return static_cast<int64_t>(ns - base_ns_); }

  ByteSink& sink_;
  EventAttributes attributes_;
  std::optional<FrameworkLinks> executions_;  // none: no arrows
  std::map<uint64_t, std::string> points_;    // of arrows, by the number of the record before them
  std::vector<uint32_t> pid_of_tid_;
  uint64_t base_ns_ = 0;
  std::string clock_words_;
  std::string clocks_json_;

  std::string out_;
  uint64_t bytes_flushed_ = 0;
  bool has_event_ = false;
  Lines lines_;       // of the record at hand
  uint32_t pid_ = 0;  // the same
  uint32_t tid_ = 0;
  uint32_t next_number_ = 1;    // processes and threads share them: none is another's main thread
  std::vector<uint32_t> pids_;  // by process; 0: not described
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> tids_;  // by row, lane
  uint64_t next_async_ = 1;
  uint64_t arrows_backwards_ = 0;  // end before they start
  WaitingSpans<Lines> waiting_;
};

}  // namespace neurontrace
