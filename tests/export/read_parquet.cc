// SPDX-License-Identifier: Apache-2.0
// Reads the Parquet tables, with Arrow.
#include <arrow/scalar.h>
#include <gtest/gtest.h>

#include "tests/export/format_readers.h"
#include "tests/export/parquet_tables.h"

namespace neurontrace {
namespace {

// A row's cells as text; of columns that are null: none.
class Rows {
 public:
  explicit Rows(const std::string& file) : table_(ReadTable(file)) {}

  int64_t size() const { return table_->num_rows(); }
  Texts operator[](int64_t row) const {
    Texts texts;
    for (int i = 0; i < table_->num_columns(); ++i) {
      const auto scalar = table_->column(i)->GetScalar(row);
      if (!scalar.ok()) {
        ADD_FAILURE() << scalar.status().ToString();
        continue;
      }
      if ((*scalar)->is_valid) texts[table_->field(i)->name()] = (*scalar)->ToString();
    }
    return texts;
  }

 private:
  std::shared_ptr<arrow::Table> table_;
};

class ParquetReader {
 public:
  void TakeEvents(const Rows& rows) {
    for (int64_t i = 0; i < rows.size(); ++i) {
      const Texts row = rows[i];
      SeenEvent seen = SeenRow(row);
      EXPECT_TRUE(id_of_row_.emplace(TextIn(row, "id"), seen.id).second);
      if (seen.id != 0) found_.events.push_back(std::move(seen));
    }
  }
  void TakeArrows(const Rows& rows) {
    for (int64_t i = 0; i < rows.size(); ++i) {
      const Texts row = rows[i];
      if (TextIn(row, "dependency_type") != "framework") continue;
      found_.arrows.emplace(id_of_row_.at(TextIn(row, "in_id")),
                            id_of_row_.at(TextIn(row, "out_id")));
    }
  }
  void ReadSamples(const Rows& rows, bool is_cpu) {
    for (int64_t i = 0; i < rows.size(); ++i) {
      const Texts row = rows[i];
      found_.samples.insert({TextIn(row, "instance_id"),
                             is_cpu ? "cpu " + TextIn(row, "cpu_id") : "memory",
                             NumberIn(row, "timestamp"),
                             std::stod(TextIn(row, is_cpu ? "util_percent" : "used_bytes"))});
    }
  }
  SeenCapture Take() { return std::move(found_); }

 private:
  SeenEvent SeenRow(const Texts& row) {
    Texts attributes;
    if (const auto json = row.find("extra_attributes_json"); json != row.end()) {
      simdjson::dom::element object;
      const auto error = parser_.parse(json->second).get(object);
      EXPECT_EQ(error, simdjson::SUCCESS) << error << ": " << json->second;
      if (error == simdjson::SUCCESS) attributes = ValuesOf(object.get_object());
    }
    const bool is_framework = TextIn(row, "trace_event_source") == "framework";
    SeenEvent seen;
    seen.id = is_framework ? NumberIn(attributes, "p.id") : NumberIn(row, "nt_event_id");
    seen.name = TextIn(row, "name");
    seen.category = TextIn(row, "nt_category");
    seen.instance_id = TextIn(row, "instance_id");
    seen.nc_idx = TextIn(row, "nc_idx");
    // docs/formats/parquet.md: "Null if a framework's id is not a number"; then the name has it.
    // And "a number that does not fit its column is null there and in `extra_attributes_json` in
    // full".
    seen.process_id = TextIn(row, row.contains("process_id") ? "process_id" : "nt_process_name");
    seen.thread_id = row.contains("thread_id") ? TextIn(row, "thread_id")
                     : is_framework            ? TextIn(row, "nt_thread_name")
                                               : TextIn(attributes, "thread_id");
    seen.start_ns = NumberIn(row, "start_ts");
    seen.end_ns = NumberIn(row, "end_ts");
    EXPECT_EQ(seen.end_ns - seen.start_ns, NumberIn(row, "duration_ns"));
    seen.is_instant = TextIn(row, "nt_is_instant") == "true";
    seen.is_open = TextIn(row, "nt_is_open") == "true";
    seen.is_start_lost = TextIn(row, "nt_is_start_lost") == "true";
    seen.nrta_seq_id = TextIn(row, "nt_nrta_seq_id");
    ReadAttributes(attributes, seen);
    return seen;
  }

  simdjson::dom::parser parser_;
  std::map<std::string, uint64_t> id_of_row_;
  SeenCapture found_;
};

}  // namespace

SeenCapture ReadParquet(ChunkSource& source, const TimelineFilter& filter) {
  const auto files = ExportFiles("parquet", source, {.filter = filter});
  // A table is in one file, or in numbered ones.
  const auto each = [&files](std::string_view table, const auto& take) {
    for (const auto& [name, bytes] : files) {
      const std::string_view stem = std::string_view(name).substr(0, name.rfind(".parquet"));
      if (stem == table || (stem.starts_with(table) && stem[table.size()] == '_')) {
        take(Rows(bytes));
      }
    }
  };
  ParquetReader reader;
  each("SystemProfileEvents", [&](const Rows& rows) { reader.TakeEvents(rows); });
  each("Flow", [&](const Rows& rows) { reader.TakeArrows(rows); });
  each("CpuUsage", [&](const Rows& rows) { reader.ReadSamples(rows, true); });
  each("HostMemUsage", [&](const Rows& rows) { reader.ReadSamples(rows, false); });
  return reader.Take();
}

}  // namespace neurontrace
