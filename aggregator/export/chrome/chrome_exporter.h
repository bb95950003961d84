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

// The following functions append pieces of trace-event JSON that are not plain JSON, see
// docs/formats/chrome_json.md.
//
// Appends nanoseconds as the format's microseconds with three decimals: "-1.500".
void AppendMicroseconds(int64_t ns, std::string& out);

// Appends ,"name":value of an argument. Whole numbers that a double cannot hold exactly become
// strings, because JavaScript would round them.
void AppendArgument(const EventAttribute& attribute, std::string& out);
// Appends the value alone.
void AppendArgumentValue(const EventAttribute& attribute, std::string& out);

// Appends ,"name":value of a counter, always as a number: viewers draw nothing else.
void AppendCounterValue(std::string_view name, const ShapeKey& key, uint64_t value,
                        std::string& out);

// Writes a timeline in the Trace Event Format (JSON) for chrome://tracing and other readers;
// docs/formats/chrome_json.md defines every key. One event a line, in the order of starts, except
// for spans whose stop is in a later chunk. Used by one thread at a time; the sink must outlive it.
class ChromeExporter final : public RowExporter {
 public:
  struct Options {
    Grouping grouping;
    bool no_flows = false;
  };
  // Arrows of frameworks and derived ones are both omitted with no_flows.
  ChromeExporter(Options options, ByteSink& sink)
      : RowExporter(std::move(options.grouping), options.no_flows), sink_(sink) {}

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Finish(ExportSummary& summary) override;
  uint64_t bytes_written() const override { return bytes_flushed_ + out_.size(); }

 private:
  // An event that is being written, in pieces, because its arguments may grow until its stop comes.
  struct Lines {
    // The event up to its arguments, without a closing brace.
    std::string head;
    // Members of "args", each with a comma before it.
    std::string arguments;
    // Whole events that must follow it.
    std::string after;
  };

  void StartBatch(const TimelineBatch&) override { points_.clear(); }
  uint32_t Placed(const TimelineRecord& record, uint64_t number, Placement& placement) override;
  // Places the arrows of framework files under ids of our own. Readers connect a point to the span
  // of its thread that they read last. Therefore a point has its span's begin as its time, and
  // directly follows the span if that is still to be written.
  void PlaceArrows() override;
  absl::Status WriteStop(const TimelineRecord& record) override;
  absl::Status WriteHostCounter(const TimelineRecord& record) override;
  absl::Status WriteCounter(const TimelineRecord& record) override;
  absl::Status WriteEvent(const TimelineRecord& record, uint64_t number,
                          const Placement& placement) override;
  absl::Status FlushIfLarge() override;
  absl::Status EndBatch(const TimelineBatch& batch) override;

  // Write a span, or an instant, with its arrows.
  void WriteSpan(const TimelineRecord& record, uint64_t number, const Placement& placement);
  void WriteInstant(const TimelineRecord& record, uint32_t row);
  // One end of an arrow.
  struct ArrowPoint {
    char phase = 's';
    uint64_t id = 0;
    uint64_t at_ns = 0;
    // The number of the record that it follows.
    uint64_t behind = 0;
  };
  // Writes the point, or keeps it until its record is written. Sets pid_ and tid_ to those of the
  // span.
  void WritePoint(const ArrowPoint& point, const ArrowSpan& span, std::string_view category);
  void WriteLosses();
  void WriteCertificate(uint64_t at_ns);
  void AppendOtherData(const std::vector<std::string>& warnings);
  // Appends {"ph":…,"name":…,"cat":…,"pid":…,"tid":…,"ts":…
  void AppendHead(std::string_view phase, std::string_view name, std::string_view category,
                  uint64_t at_ns, std::string& out);
  // Appends the points of derived arrows that the record touches.
  void AppendArrows(const TimelineRecord& record, std::string& out);
  void AppendArguments(const std::vector<EventAttribute>& attributes, std::string& out);
  // Appends the attributes of a stop that came after its start was formatted.
  void AppendStopArguments(const std::vector<EventAttribute>& attributes, std::string& out);
  // Return the numbers of processes and lanes in the file; a new one is described first.
  uint32_t PidOf(uint32_t process);
  uint32_t TidOf(uint32_t row, uint32_t lane);
  // Writes a metadata event about pid_ and tid_.
  void Describe(std::string_view kind, std::string_view text, bool is_number);
  // Adds an event, with what must follow it, or one line, to the output.
  void Emit(const Lines& lines);
  void Line(std::string_view text);
  absl::Status Flush();
  // Negative for what is before the base, such as an early loss.
  int64_t Since(uint64_t ns) const { return static_cast<int64_t>(ns - base_ns_); }

  ByteSink& sink_;
  EventAttributes attributes_;
  // nullopt: no arrows.
  std::optional<FrameworkLinks> executions_;
  // Points of arrows by the number of the record before them.
  std::map<uint64_t, std::string> points_;
  // The process of each thread number, for arrows whose span was placed earlier.
  std::vector<uint32_t> pid_of_tid_;
  uint64_t base_ns_ = 0;
  // ClockReport's texts, made in Begin and written by Finish.
  std::string clock_description_;
  std::string clocks_json_;

  // Text that has not reached the sink; bytes_flushed_ counts what has.
  std::string out_;
  uint64_t bytes_flushed_ = 0;
  // Whether a comma must precede the next line.
  bool has_event_ = false;
  // Of the current record, as are pid_ and tid_.
  Lines lines_;
  uint32_t pid_ = 0;
  uint32_t tid_ = 0;
  // For processes and threads together: no thread has the number of its process, which would make
  // it the main thread.
  uint32_t next_number_ = 1;
  // By process; 0: not described yet.
  std::vector<uint32_t> pids_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> tids_;  // by row, lane
  // The next id of an asynchronous event.
  uint64_t next_async_ = 1;
  // Arrows that end before they start.
  uint64_t arrows_backwards_ = 0;
  WaitingSpans<Lines> waiting_;
};

}  // namespace neurontrace
