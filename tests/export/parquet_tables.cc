// SPDX-License-Identifier: Apache-2.0
#include "tests/export/parquet_tables.h"

#include <arrow/array.h>
#include <arrow/io/memory.h>
#include <arrow/memory_pool.h>
#include <arrow/scalar.h>
#include <gtest/gtest.h>
#include <parquet/arrow/reader.h>

namespace neurontrace {

std::shared_ptr<arrow::Table> ReadTable(const std::string& bytes) {
  auto input = std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(bytes));
  auto reader = parquet::arrow::OpenFile(input, arrow::system_memory_pool());
  EXPECT_TRUE(reader.ok()) << reader.status().ToString();
  auto table = (*reader)->ReadTable();
  EXPECT_TRUE(table.ok() && (*table)->ValidateFull().ok());
  return *(*table)->CombineChunks();
}

std::string Cell(const arrow::Table& table, const std::string& column, int64_t row) {
  const auto values = table.GetColumnByName(column);
  EXPECT_NE(values, nullptr) << column;
  const auto scalar = values->GetScalar(row);
  EXPECT_TRUE(scalar.ok()) << column;
  return (*scalar)->is_valid ? (*scalar)->ToString() : "null";
}

}  // namespace neurontrace
