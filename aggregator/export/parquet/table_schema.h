// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace neurontrace {

// The version of the vendor's schema that the tables follow (profile-schema-reference of Neuron SDK
// 2.31). Columns and tables of ours begin with "nt_" and "Nt".
inline constexpr std::string_view kProfileSchemaVersion = "7.4.0";

enum class ColumnType : uint8_t { kInt64, kUint64, kFloat, kDouble, kBool, kText, kTextList };
// "integer", "number", "boolean", "string", "array": the text of the vendor's SchemaFields.
std::string_view TypeName(ColumnType type);
// "int64", "uint64", "float", "double"; empty for others.
std::string_view FormatName(ColumnType type);

// What a reader is told about a column. Empty texts: there is nothing to say.
struct ColumnSpec {
  std::string_view name;
  ColumnType type = ColumnType::kInt64;
  bool is_required = false;  // never null
  std::string_view description = {};
  std::string_view unit = {};
  std::string_view example = {};
  std::string_view minimum = {};
  std::string_view maximum = {};
  std::string_view enum_values = {};  // between commas
  // Values hardly recur and grow from row to row: what changes is written.
  bool is_rising = false;
};

struct TableSpec {
  std::string_view name;  // of the file, too
  std::string_view description;
  std::span<const ColumnSpec> columns;
  // A row group's, about, before it is encoded. That of one table is large: what all hold together
  // is then the same for a short capture and a long one, in which all groups fill.
  size_t group_bytes = size_t{1} << 20;
};

// The vendor's.
extern const TableSpec kSystemProfileEvents;
extern const TableSpec kCpuUsage;
extern const TableSpec kHostMemUsage;
extern const TableSpec kSystemProfileHbmUsage;
extern const TableSpec kSystemProfileMetadata;
extern const TableSpec kDeviceProfileList;
extern const TableSpec kWarning;
extern const TableSpec kFlow;
extern const TableSpec kSchemaFields;
// Ours.
extern const TableSpec kNtExecutions;
extern const TableSpec kNtSteps;
extern const TableSpec kNtCollectives;
extern const TableSpec kNtCollectiveMembers;
extern const TableSpec kNtBandwidth;
extern const TableSpec kNtClocks;
extern const TableSpec kNtLosses;

std::span<const TableSpec* const> AllTables();

}  // namespace neurontrace
