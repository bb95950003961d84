// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "aggregator/export/output_files.h"
#include "aggregator/export/parquet/table_schema.h"

namespace neurontrace {

// Writes the rows of one table as Parquet files, zstd: TABLE.parquet where they are few, and
// TABLE_0.parquet, TABLE_1.parquet, … where they are many. A table without a row has no file.
//
// Of a row, the values are given in the order of the columns, then EndRow. What does not fit the
// column's type ends the export with INTERNAL, as do too few or too many. Texts of any bytes are
// taken: what is no UTF-8 becomes U+FFFD. Memory is bounded by the constants. One thread at a time.
class TableWriter {
 public:
  static constexpr uint64_t kFileBytesDefault = 256u << 20;
  static constexpr size_t kGroupRowsMax = 131'072;  // rows of one row group
  // Columns of all row groups of a file: what its end says of each is held until it is written.
  static constexpr uint64_t kFileColumnsMax = 1'024;
  // So much of a table's first file is kept until it is known whether the file is the only one.
  static constexpr size_t kHeadBytesMax = 1u << 20;

  // Files are closed when they are about `file_bytes_max` long (0: the default), or full of groups.
  // Adds what it writes to `bytes_written`. All of these outlive it.
  TableWriter(OutputFiles& files, const TableSpec& table, uint64_t file_bytes_max,
              uint64_t& bytes_written);
  ~TableWriter();
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;

  TableWriter& Int(std::optional<int64_t> value);
  TableWriter& Count(uint64_t value);  // INT64_MAX where it is more
  TableWriter& Uint(std::optional<uint64_t> value);
  TableWriter& Real(std::optional<double> value);  // of kFloat and kDouble
  TableWriter& Bool(bool value);
  TableWriter& Text(std::string_view value);
  TableWriter& TextOrNull(std::string_view value);          // null where it is empty
  TableWriter& Texts(std::span<const std::string> values);  // null where there is none
  TableWriter& Null();
  // Errors of the files.
  absl::Status EndRow();
  // Closes the last file; no row comes after it.
  absl::Status Finish();

  uint64_t rows() const { return rows_; }

 private:
  struct Parts;  // Arrow's

  uint64_t rows_ = 0;
  std::unique_ptr<Parts> parts_;
};

}  // namespace neurontrace
