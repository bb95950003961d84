// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/export/exporter.h"
#include "aggregator/export/parquet/table_writer.h"
#include "aggregator/timeline/model_names.h"
#include "aggregator/timeline/record_bounds.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// The outcome of the attributes of one shape's events in a row. A plain value.
struct RowPlan {
  enum class Use : uint8_t {
    kAttribute,
    kPhysicalCore,     // besides
    kExecId,           // besides
    kFrameworkStream,  // besides
    kModelName,        // elsewhere
    kStructure,        // has become something else
  };
  struct Key {
    Use use = Use::kAttribute;
    std::string json;  // ,"key":
  };
  std::vector<Key> keys;
};

// The plans of every shape of a reading, each made once. One thread at a time.
class RowPlans {
 public:
  // Shapes of a higher number are planned again, but for the one that was asked for last.
  static constexpr size_t kShapesMax = 16'384;

  // Valid until the next call. A shape is always a framework's or never.
  const RowPlan& Of(const SharedShape& shape, bool is_framework, bool is_span);

 private:
  std::vector<std::unique_ptr<const RowPlan>> by_number_;
  RowPlan other_;
  uint64_t other_number_ = 0;  // its shape's
};

// One row of SystemProfileEvents, complete but for what the span's stop may bring. A plain value.
struct EventRow {
  int64_t id = 0;
  std::string name;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  std::string_view source;
  uint32_t stream = 0;
  std::optional<int64_t> process_id;
  std::optional<int64_t> thread_id;
  std::optional<int64_t> physical_core;
  std::vector<std::string> flow_ids;
  std::string framework_stream;
  std::string attributes;  // of an object, without its last brace; empty: there are none
  std::optional<uint64_t> event_id;
  std::optional<uint64_t> exec_id;
  std::optional<uint64_t> nrta_seq_id;
  std::string category;
  bool is_instant = false;
  bool is_open = false;
  bool is_start_lost = false;
  std::string_view clock;
  std::optional<uint64_t> bound_ns;
  std::optional<uint64_t> raw_start_ns;
  std::string process_name;
  std::string thread_name;
};

// Makes rows of records. One thread at a time; the header must outlive it.
class EventRowMaker {
 public:
  explicit EventRowMaker(const TimelineHeader& header);

  // To be called once for each record, in their order. Overwrites all but `row.id`; flow_ids are
  // for others to fill.
  void Fill(const TimelineRecord& record, EventRow& row);
  // The attributes of a stop that came later (kStopAttributes).
  void AddStop(const TimelineRecord& record, EventRow& row);
  void Write(EventRow& row, TableWriter& table) const;

 private:
  void FillFramework(const TimelineRecord& record, EventRow& row);
  void FillNeuron(const TimelineRecord& record, EventRow& row);
  void FillClock(const TimelineRecord& record, EventRow& row);
  void AddAttributes(const TimelineRecord& record, EventRow& row);
  void AddModel(const TimelineRecord& record, EventRow& row);
  static void AddStopAttributes(const Shape& shape, std::span<const uint64_t> values,
                                const TimelineRecord& record, EventRow& row);

  const TimelineHeader& header_;
  RecordBounds bounds_;
  std::vector<bool> is_known_;  // by stream: something is known of its host's clock
  RowPlans plans_;
  ModelNames models_;
};

}  // namespace neurontrace
