// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/export/exporter.h"
#include "aggregator/export/parquet/row_plans.h"
#include "aggregator/export/parquet/table_writer.h"
#include "aggregator/timeline/model_names.h"
#include "aggregator/timeline/record_bounds.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// One row of SystemProfileEvents, complete except for what the span's stop may add. A plain value.
struct EventRow {
  // Counts the rows in the order of their starts; FlowEdges refers to rows by it.
  int64_t id = 0;
  std::string name;
  // Reference time, or the stream's own if it has one.
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  // ToString of a RowSource.
  std::string_view source;
  uint32_t stream = 0;
  // nullopt if a framework's id is no number. Its text is then the name, if the file gives no
  // other.
  std::optional<int64_t> process_id;
  std::optional<int64_t> thread_id;
  // The attribute device_core_idx.
  std::optional<int64_t> physical_core;
  std::vector<std::string> flow_ids;
  std::string framework_stream;
  // The members of an object without its closing brace; empty if there are none.
  std::string attributes;
  std::optional<uint64_t> event_id;
  std::optional<uint64_t> exec_id;
  std::optional<uint64_t> nrta_seq_id;
  std::string category;
  bool is_instant = false;
  bool is_open = false;
  bool is_start_lost = false;
  // "host", "device", "vendor" or "own"; empty if nothing is known of clocks.
  std::string_view clock;
  // How far start_ns can be from the truth.
  std::optional<uint64_t> bound_ns;
  // The stamp as recorded, if it differs from start_ns.
  std::optional<uint64_t> raw_start_ns;
  std::string process_name;
  std::string thread_name;
};

// Makes rows of records. Used by one thread at a time; the header must outlive it.
class EventRowMaker {
 public:
  explicit EventRowMaker(const TimelineHeader& header);

  // Overwrites all of `row` except for its id; flow_ids are left to others. Must be called once for
  // each record, in the timeline's order.
  void Fill(const TimelineRecord& record, EventRow& row);
  // Adds the attributes of a stop that came later (kStopAttributes).
  void AddStop(const TimelineRecord& record, EventRow& row);
  // Writes the row's values in the order of kSystemProfileEvents, without ending the row.
  void Write(EventRow& row, TableWriter& table) const;

 private:
  // Fill the columns that depend on who recorded the event.
  void FillFramework(const TimelineRecord& record, EventRow& row);
  void FillAnnotation(const TimelineRecord& record, EventRow& row);
  // Sets the name that the event gives itself, or else its type.
  static void FillName(const TimelineRecord& record, EventRow& row);
  void FillNeuron(const TimelineRecord& record, EventRow& row);
  // Fills in whose clock the times are of, and how accurate they are.
  void FillClock(const TimelineRecord& record, EventRow& row);
  void AddAttributes(const TimelineRecord& record, EventRow& row);
  // Adds the model's name to the attributes, if it is known.
  void AddModel(const TimelineRecord& record, EventRow& row);
  static void AddStopAttributes(const Shape& shape, std::span<const uint64_t> values,
                                const TimelineRecord& record, EventRow& row);

  // The exporter's, for the streams and their names.
  const TimelineHeader& header_;
  RecordBounds bounds_;
  // By stream: whether something is known of its host's clock.
  std::vector<bool> is_known_;
  RowPlans plans_;
  ModelNames models_;
};

}  // namespace neurontrace
