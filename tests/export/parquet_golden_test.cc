// SPDX-License-Identifier: Apache-2.0
// Goal: what the tables hold changes only on purpose. Method: as in golden_test.cc; cells as Arrow
// reads them, those that are null left out.
#include <arrow/scalar.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/export/golden_fixture.h"
#include "tests/export/parquet_tables.h"

namespace neurontrace {
namespace {

using ParquetGoldenTest = GoldenFixture;

std::string TableText(const arrow::Table& table) {
  std::string text;
  for (int64_t row = 0; row < table.num_rows(); ++row) {
    text += ' ';
    for (int i = 0; i < table.num_columns(); ++i) {
      const std::string& name = table.field(i)->name();
      const std::string cell = Cell(table, name, row);
      if (cell != "null") text += fmt::format(" {}={}", name, cell);
    }
    text += '\n';
  }
  return text;
}

TEST_F(ParquetGoldenTest, Tables) {
  StringFiles files;
  const auto summary = ExportCapture(source_, **FindExportFormat("parquet"), {}, files, {});
  ASSERT_TRUE(summary.ok()) << summary.status();
  std::string text;
  for (const auto& [name, bytes] : files.files) {
    if (name == "SchemaFields.parquet") continue;  // docs/formats/parquet.md has it
    text += name + "\n" + TableText(*ReadTable(bytes));
  }
  Compare("export.parquet.txt", text);
}

}  // namespace
}  // namespace neurontrace
