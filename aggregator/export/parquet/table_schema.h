// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace neurontrace {

// The version of the vendor's schema that the tables follow (profile-schema-reference of Neuron SDK
// 2.31). Our own columns begin with "nt_", and our own tables with "Nt".
inline constexpr std::string_view kProfileSchemaVersion = "7.4.0";

// The types that a column can have; ArrowType in table_writer.cc has their counterparts.
enum class ColumnType : uint8_t {
  kInt64,
  kUint64,
  kFloat,
  kDouble,
  kBool,
  kText,
  kTextList,
  kInt64List
};
// Returns "integer", "number", "boolean", "string" or "array", as the vendor's SchemaFields has it.
std::string_view TypeName(ColumnType type);
// Returns "int64", "uint64", "float" or "double", and an empty text for other types.
std::string_view FormatName(ColumnType type);

// The description of a column, for the writer and for SchemaFields. Empty texts are written as
// null.
struct ColumnSpec {
  std::string_view name;
  ColumnType type = ColumnType::kInt64;
  // Never null.
  bool is_required = false;
  // For people; the others are texts of SchemaFields in the vendor's form.
  std::string_view description = {};
  std::string_view unit = {};
  std::string_view example = {};
  std::string_view minimum = {};
  std::string_view maximum = {};
  // Separated by commas.
  std::string_view enum_values = {};
  // Values hardly recur and grow from row to row, so that differences are encoded.
  bool is_rising = false;
};

// The description of a table.
struct TableSpec {
  // Also the name of its file.
  std::string_view name;
  std::string_view description;
  std::span<const ColumnSpec> columns;
  // The approximate size of a row group before encoding. It is large for one table only: otherwise
  // the memory of all tables together would differ between short captures and long ones, in which
  // all groups fill.
  size_t group_bytes = size_t{1} << 20;
};

// Tables of the vendor's schema.
extern const TableSpec kSystemProfileEvents;
extern const TableSpec kCpuUsage;
extern const TableSpec kHostMemUsage;
extern const TableSpec kSystemProfileHbmUsage;
extern const TableSpec kSystemProfileMetadata;
extern const TableSpec kDeviceProfileList;
extern const TableSpec kWarning;
extern const TableSpec kFlow;
extern const TableSpec kSchemaFields;
// Our own tables.
extern const TableSpec kNtExecutions;
extern const TableSpec kNtSteps;
extern const TableSpec kNtCollectives;
extern const TableSpec kNtCollectiveMembers;
extern const TableSpec kNtBandwidth;
extern const TableSpec kNtClocks;
extern const TableSpec kNtLosses;
extern const TableSpec kNtVerdicts;

// Returns every table that an export can have, in the order of SchemaFields.
std::span<const TableSpec* const> AllTables();

}  // namespace neurontrace
