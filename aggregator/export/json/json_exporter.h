// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/derive/shape_fields.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/waiting_spans.h"
#include "aggregator/timeline/model_names.h"
#include "aggregator/timeline/record_bounds.h"

namespace neurontrace {

// Writes a timeline as the vendor's system_profile.json; docs/formats/json.md defines every key.
// Spans are in the order of their starts, except for those whose stop is in a later chunk, which
// are written where they stop. Used by one thread at a time; the sink must outlive it.
class JsonExporter : public Exporter {
 public:
  explicit JsonExporter(ByteSink& sink) : sink_(sink) {}

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Write(const TimelineBatch& batch) override;
  absl::Status Finish(ExportSummary& summary) override;
  uint64_t bytes_written() const override { return bytes_flushed_ + out_.size(); }

 private:
  // Writes the record's object, or holds it until its stop comes. Omits records without a place in
  // the vendor's list, such as arrows.
  void WriteRecord(const TimelineRecord& record);
  // Appends an event's object without its closing brace.
  void AppendEvent(const TimelineRecord& record, std::string& out);
  // Append the members that identify a framework's event or one of the runtime.
  void AppendFrameworkFields(const TimelineRecord& record, std::string& out);
  void AppendAnnotationFields(const TimelineRecord& record, std::string& out);
  void AppendNeuronFields(const TimelineRecord& record, std::string& out);
  // Appends the attributes of the record's start (or only) event, renamed where a key is taken.
  void AppendAttributes(const TimelineRecord& record, std::string& out);
  // Appends the attributes of a stop. `start` is the shape of its start, or nullptr if the start's
  // members were appended earlier.
  void AppendStopAttributes(const Shape& shape, std::span<const uint64_t> values,
                            const TimelineRecord& record, const Shape* start, std::string& out);
  // Appends the model's name, if it is known.
  void AppendModel(const TimelineRecord& record, std::string& out);
  // Appends whose time it is and how accurate.
  void AppendClock(const TimelineRecord& record, std::string& out);
  // Adds a complete event to the output.
  void EmitObject(std::string_view object);
  // Extends the range in which device memory must be read again.
  void RecordMemoryEvent(const TimelineRecord& record);
  // Write the lists that follow the events, each by reading its part of the capture again.
  absl::Status WriteHostSamples(ExportSummary& summary);
  absl::Status WriteHbmSamples(ExportSummary& summary);
  // Appends an element of the list that is being written.
  absl::Status AppendElement(std::string_view element, bool& is_first);
  // Append the remaining members of the file.
  void AppendDeviceProfiles();
  void AppendWarnings(const std::vector<std::string>& warnings);
  void AppendMetadata();
  absl::Status FlushIfLarge();
  absl::Status Flush();
  // Returns the members that every event of a stream has, serialised once.
  const std::string& StreamFields(uint32_t stream);

  ByteSink& sink_;
  // Set by Begin.
  const TimelineHeader* header_ = nullptr;
  std::string clocks_json_;
  // nullopt if clocks are not described.
  std::optional<RecordBounds> bounds_;
  std::string out_;
  // The object of the current event or sample, kept to reuse its memory.
  std::string object_;
  uint64_t bytes_flushed_ = 0;
  // Whether a comma must precede the next event.
  bool has_event_ = false;
  // The time range of all events written, for the metadata; first_ns_ exceeds last_ns_ if there are
  // none.
  uint64_t first_ns_ = UINT64_MAX;
  uint64_t last_ns_ = 0;
  ShapeFieldTable fields_;
  // The time range of events that report what is in use of a device's memory.
  uint64_t first_memory_ns_ = UINT64_MAX;
  uint64_t last_memory_ns_ = 0;
  ModelNames models_;
  // By stream; empty until the stream's first event.
  std::vector<std::string> stream_fields_;
  WaitingSpans<std::string> waiting_;
};

}  // namespace neurontrace
