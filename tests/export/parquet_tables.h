// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arrow/table.h>

#include <cstdint>
#include <memory>
#include <string>

namespace neurontrace {

// A Parquet file read by Arrow, each column in one piece; a test failure for one that is not valid.
std::shared_ptr<arrow::Table> ReadTable(const std::string& bytes);

// A cell as text; "null" where it is none.
std::string Cell(const arrow::Table& table, const std::string& column, int64_t row = 0);

}  // namespace neurontrace
