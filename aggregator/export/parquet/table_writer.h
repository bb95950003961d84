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

// Writes the rows of one table as Parquet files with zstd: TABLE.parquet if they are few, and
// TABLE_0.parquet, TABLE_1.parquet, … if they are many. A table without rows has no file.
//
// The values of a row are given in the order of the columns, then EndRow. A value of the wrong
// type, or too few or too many of them, end the export with INTERNAL. Texts may have any bytes:
// invalid UTF-8 becomes U+FFFD. Memory is bounded by the constants. Used by one thread at a time.
class TableWriter {
 public:
  // The size at which a file is closed if none is requested.
  static constexpr uint64_t kFileBytesDefault = 256u << 20;
  // Rows of one row group.
  static constexpr size_t kGroupRowsMax = 131'072;
  // Columns of all row groups of a file together: Arrow holds the metadata of each until the file's
  // end is written.
  static constexpr uint64_t kFileColumnsMax = 1'024;
  // This much of a table's first file is held back until it is known whether the file is the only
  // one, because its name depends on that.
  static constexpr size_t kHeadBytesMax = 1u << 20;

  // Adds what it writes to `bytes_written`. Files are closed when they reach about `file_bytes_max`
  // bytes (0: the default), or kFileColumnsMax. All references must outlive it.
  TableWriter(OutputFiles& files, const TableSpec& table, uint64_t file_bytes_max,
              uint64_t& bytes_written);
  ~TableWriter();
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;

  TableWriter& Int(std::optional<int64_t> value);
  // Values beyond INT64_MAX become INT64_MAX.
  TableWriter& Count(uint64_t value);
  TableWriter& Uint(std::optional<uint64_t> value);
  // For columns of kFloat and kDouble.
  TableWriter& Real(std::optional<double> value);
  TableWriter& Bool(bool value);
  TableWriter& Text(std::string_view value);
  // Null if the text is empty.
  TableWriter& TextOrNull(std::string_view value);
  // Null if there are no values, as for the next.
  TableWriter& Texts(std::span<const std::string> values);
  TableWriter& Ints(std::span<const int64_t> values);
  TableWriter& Null();
  // Ends the row and writes the group if it is full. Fails with errors of the files, and with
  // INTERNAL for an earlier wrong value.
  absl::Status EndRow();
  // Writes the last group and closes the last file. Called once.
  absl::Status Finish();

  uint64_t rows() const { return rows_; }

 private:
  // Keeps Arrow's types out of this header.
  struct Parts;

  uint64_t rows_ = 0;
  std::unique_ptr<Parts> parts_;
};

}  // namespace neurontrace
