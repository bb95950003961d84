// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/parquet/table_writer.h"

#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_nested.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/status.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "aggregator/export/json/json_text.h"
#include "aggregator/export/output_files.h"
#include "lib/base/clean_text.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Passes the bytes of one Parquet file to an export's file. Its first bytes are held back until
// there are more than `head_bytes_max`, or until Finish tells the name. Used by one thread at a
// time.
class TableFile : public arrow::io::OutputStream {
 public:
  // `name_if_long` is the file's name if it is longer than the head.
  TableFile(OutputFiles& files, std::string name_if_long, size_t head_bytes_max,
            uint64_t& bytes_written)
      : files_(files),
        name_if_long_(std::move(name_if_long)),
        head_bytes_max_(head_bytes_max),
        bytes_written_(bytes_written) {}

  arrow::Status Write(const void* data, int64_t bytes) override;
  // Called by Arrow; the export's file stays open until Finish.
  arrow::Status Close() override;
  arrow::Result<int64_t> Tell() const override { return position_; }
  bool closed() const override { return is_closed_; }
  using arrow::io::OutputStream::Write;

  bool has_name() const { return file_ != nullptr; }
  // Opens the file if that is still to be done, and closes it.
  absl::Status Finish(const std::string& name);
  // The error of the files, which has more detail than Arrow's status can carry.
  const absl::Status& status() const { return written_; }

 private:
  absl::Status Open(const std::string& name);

  OutputFiles& files_;
  const std::string name_if_long_;
  const size_t head_bytes_max_;
  uint64_t& bytes_written_;
  std::unique_ptr<OutputFile> file_;
  std::string head_;
  int64_t position_ = 0;
  bool is_closed_ = false;
  absl::Status written_;
};

absl::Status TableFile::Open(const std::string& name) {
  ASSIGN_OR_RETURN(file_, files_.Open(name));
  bytes_written_ += head_.size();
  const absl::Status status = file_->Write(head_);
  head_ = {};
  return status;
}

// While the name is open, bytes are collected in head_. The first write beyond the head opens the
// file under the name of one of several.
arrow::Status TableFile::Write(const void* data, int64_t bytes) {
  const std::string_view text(static_cast<const char*>(data), static_cast<size_t>(bytes));
  if (written_.ok() && file_ == nullptr && head_.size() + text.size() > head_bytes_max_) {
    written_ = Open(name_if_long_);
  }
  if (written_.ok() && file_ == nullptr) {
    head_ += text;
  } else if (written_.ok()) {
    bytes_written_ += text.size();
    written_ = file_->Write(text);
  }
  // Arrow's status only makes it stop; callers look at status() first.
  if (!written_.ok()) return arrow::Status::IOError("the file cannot be written");
  position_ += bytes;
  return arrow::Status::OK();
}

arrow::Status TableFile::Close() {
  is_closed_ = true;
  return arrow::Status::OK();
}

// `name` matters only if nothing was opened so far.
absl::Status TableFile::Finish(const std::string& name) {
  RETURN_IF_ERROR(written_);
  if (file_ == nullptr) RETURN_IF_ERROR(Open(name));
  return file_->Close();
}

// Returns `text` if it is UTF-8, and otherwise `repaired`, which becomes the text with U+FFFD for
// each invalid byte. Parquet strings must be UTF-8, and Arrow does not check them here.
inline std::string_view Utf8Text(std::string_view text, std::string& repaired) {
  size_t good = 0;
  while (good < text.size() && static_cast<unsigned char>(text[good]) < 0x80) ++good;
  for (size_t bytes = 1; good < text.size() && bytes > 0; good += bytes) {
    bytes = Utf8SequenceBytes(text.substr(good));
  }
  if (good == text.size()) return text;
  repaired.clear();
  AppendRepairedUtf8(text, repaired);
  return repaired;
}

// A smaller limit of the file does not make row groups smaller than this.
constexpr size_t kGroupBytesMin = 256u << 10;
// Roughly what the end of a file has for one column of one row group.
constexpr size_t kFooterBytes = 256;
// Longer minima and maxima are omitted there.
constexpr size_t kStatisticsBytesMax = 64;
// The fastest level: Parquet's own encodings have removed most repetition already.
constexpr int kZstdLevel = 1;

std::shared_ptr<arrow::DataType> ArrowType(ColumnType type) {
  switch (type) {
    case ColumnType::kInt64:
      return arrow::int64();
    case ColumnType::kUint64:
      return arrow::uint64();
    case ColumnType::kFloat:
      return arrow::float32();
    case ColumnType::kDouble:
      return arrow::float64();
    case ColumnType::kBool:
      return arrow::boolean();
    case ColumnType::kTextList:
      return arrow::list(arrow::utf8());
    case ColumnType::kInt64List:
      return arrow::list(arrow::int64());
    case ColumnType::kText:
      break;
  }
  return arrow::utf8();
}

// The metadata lets a reader find which version of the schema a single file follows.
std::shared_ptr<arrow::Schema> ArrowSchema(const TableSpec& table) {
  std::vector<std::shared_ptr<arrow::Field>> fields;
  for (const ColumnSpec& column : table.columns) {
    fields.push_back(
        arrow::field(std::string(column.name), ArrowType(column.type), !column.is_required));
  }
  return arrow::schema(std::move(fields), arrow::key_value_metadata(
                                              {"profile_schema_version", "producer", "table"},
                                              {std::string(kProfileSchemaVersion),
                                               fmt::format("neurontrace {}", NEURONTRACE_VERSION),
                                               std::string(table.name)}));
}

// Returns how the columns of a table are encoded and compressed.
std::shared_ptr<parquet::WriterProperties> Properties(const TableSpec& table) {
  parquet::WriterProperties::Builder properties;
  properties.compression(arrow::Compression::ZSTD)
      ->compression_level(kZstdLevel)
      ->max_statistics_size(kStatisticsBytesMax)
      ->memory_pool(arrow::default_memory_pool())
      ->max_row_group_length(static_cast<int64_t>(TableWriter::kGroupRowsMax))
      ->created_by(fmt::format("neurontrace {}", NEURONTRACE_VERSION));
  for (const ColumnSpec& column : table.columns) {
    // A dictionary of values that never recur would be larger than the values.
    if (!column.is_rising) continue;
    const std::string name(column.name);
    properties.disable_dictionary(name)->encoding(name, parquet::Encoding::DELTA_BINARY_PACKED);
  }
  return properties.build();
}

// An error of Arrow is a fault of this program or a lack of memory, hence INTERNAL.
absl::Status FromArrow(const arrow::Status& status) {
  return status.ok() ? absl::OkStatus() : absl::InternalError("parquet: " + status.ToString());
}

}  // namespace

// A row is collected in `builders`, a row group in their arrays, and a file in `writer`. `file` and
// `writer` exist only while a file is open.
struct TableWriter::Parts {
  OutputFiles& files;
  const TableSpec& table;
  const uint64_t file_bytes_max;
  const size_t group_bytes_max;
  uint64_t& bytes_written;

  const std::shared_ptr<arrow::Schema> schema;
  std::vector<std::unique_ptr<arrow::ArrayBuilder>> builders;
  // The first error that a value met.
  arrow::Status status;
  // The next column of the current row.
  size_t column = 0;
  size_t group_rows = 0;
  size_t group_bytes = 0;
  std::string repaired;

  uint64_t part = 0;
  uint64_t part_groups = 0;
  std::shared_ptr<TableFile> file;
  std::unique_ptr<parquet::arrow::FileWriter> writer;

  // Returns the builder of the next column, or nullptr and sets `status` if that has another type.
  arrow::ArrayBuilder* Next(ColumnType type) {
    if (!status.ok()) return nullptr;
    if (column == builders.size() || table.columns[column].type != type) {
      // A wrong order of values is an error of this program; it ends the export rather than
      // shifting columns.
      status = arrow::Status::TypeError(
          fmt::format("{}: value {} of a row does not have its column's type", table.name, column));
      return nullptr;
    }
    return builders[column++].get();
  }
  // Appends a value or a null; errors go to `status`, which EndRow reports.
  template <typename Builder, typename Value>
  void Append(ColumnType type, const std::optional<Value>& value) {
    auto* builder = static_cast<Builder*>(Next(type));
    if (builder == nullptr) return;
    group_bytes += sizeof(Value);
    status = value ? builder->Append(*value) : builder->AppendNull();
  }
  void AppendText(arrow::StringBuilder& builder, std::string_view text) {
    text = Utf8Text(text, repaired);
    group_bytes += text.size() + sizeof(int32_t);
    status = builder.Append(text);
  }

  arrow::Status MakeBuilders();
  // Returns the size of the current file including its end.
  uint64_t PartBytes() const {
    return static_cast<uint64_t>(*file->Tell()) + part_groups * builders.size() * kFooterBytes;
  }
  absl::Status OpenPart();
  absl::Status ClosePart(bool is_only);
  absl::Status WriteGroup();
};

arrow::Status TableWriter::Parts::MakeBuilders() {
  for (const auto& field : schema->fields()) {
    std::unique_ptr<arrow::ArrayBuilder> builder;
    const arrow::Status made =
        arrow::MakeBuilder(arrow::default_memory_pool(), field->type(), &builder);
    if (!made.ok()) return made;
    builders.push_back(std::move(builder));
  }
  return arrow::Status::OK();
}

absl::Status TableWriter::Parts::OpenPart() {
  file = std::make_shared<TableFile>(files, fmt::format("{}_{}.parquet", table.name, part),
                                     kHeadBytesMax, bytes_written);
  auto opened = parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(), file,
                                                 Properties(table));
  if (!opened.ok()) return FromArrow(opened.status());
  writer = *std::move(opened);
  // Readers that do not know Arrow's schema also find who wrote the file, and after which schema.
  return FromArrow(writer->AddKeyValueMetadata(schema->metadata()));
}

// Writes the file's end and closes it under its final name.
absl::Status TableWriter::Parts::ClosePart(bool is_only) {
  const arrow::Status closed = writer->Close();
  RETURN_IF_ERROR(file->status());
  RETURN_IF_ERROR(FromArrow(closed));
  RETURN_IF_ERROR(file->Finish(is_only ? fmt::format("{}.parquet", table.name)
                                       : fmt::format("{}_{}.parquet", table.name, part)));
  writer.reset();
  file.reset();
  ++part;
  part_groups = 0;
  return absl::OkStatus();
}

absl::Status TableWriter::Parts::WriteGroup() {
  // Decided before a group is written, so that the last file of a table is never empty.
  const bool is_full = writer != nullptr && (PartBytes() >= file_bytes_max ||
                                             (part_groups + 1) * builders.size() > kFileColumnsMax);
  if (is_full) RETURN_IF_ERROR(ClosePart(false));
  if (writer == nullptr) RETURN_IF_ERROR(OpenPart());
  // Finish empties the builders, which keep nothing of the group.
  std::vector<std::shared_ptr<arrow::Array>> arrays;
  for (const auto& builder : builders) {
    auto array = builder->Finish();
    if (!array.ok()) return FromArrow(array.status());
    arrays.push_back(*std::move(array));
  }
  const auto rows = static_cast<int64_t>(group_rows);
  const auto group = arrow::Table::Make(schema, std::move(arrays), rows);
  group_rows = 0;
  group_bytes = 0;
  ++part_groups;
  const arrow::Status written = writer->WriteTable(*group, rows);
  RETURN_IF_ERROR(file->status());
  return FromArrow(written);
}

TableWriter::TableWriter(OutputFiles& files, const TableSpec& table, uint64_t file_bytes_max,
                         uint64_t& bytes_written) {
  if (file_bytes_max == 0) file_bytes_max = kFileBytesDefault;
  parts_.reset(new Parts{
      .files = files,
      .table = table,
      .file_bytes_max = file_bytes_max,
      // Encoded rows have a quarter of their size or less, so that a file exceeds its limit only a
      // little.
      .group_bytes_max = std::clamp<uint64_t>(file_bytes_max, kGroupBytesMin, table.group_bytes),
      .bytes_written = bytes_written,
      .schema = ArrowSchema(table)});
  parts_->status = parts_->MakeBuilders();
}

TableWriter::~TableWriter() = default;

TableWriter& TableWriter::Int(std::optional<int64_t> value) {
  parts_->Append<arrow::Int64Builder>(ColumnType::kInt64, value);
  return *this;
}

TableWriter& TableWriter::Count(uint64_t value) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return Int(static_cast<int64_t>(std::min(value, kMax)));
}

TableWriter& TableWriter::Uint(std::optional<uint64_t> value) {
  parts_->Append<arrow::UInt64Builder>(ColumnType::kUint64, value);
  return *this;
}

TableWriter& TableWriter::Real(std::optional<double> value) {
  const Parts& parts = *parts_;
  const bool is_float = parts.column < parts.table.columns.size() &&
                        parts.table.columns[parts.column].type == ColumnType::kFloat;
  if (is_float) {
    const std::optional<float> narrow =
        value ? std::optional<float>(static_cast<float>(*value)) : std::nullopt;
    parts_->Append<arrow::FloatBuilder>(ColumnType::kFloat, narrow);
  } else {
    parts_->Append<arrow::DoubleBuilder>(ColumnType::kDouble, value);
  }
  return *this;
}

TableWriter& TableWriter::Bool(bool value) {
  parts_->Append<arrow::BooleanBuilder>(ColumnType::kBool, std::optional<bool>(value));
  return *this;
}

TableWriter& TableWriter::Text(std::string_view value) {
  auto* builder = static_cast<arrow::StringBuilder*>(parts_->Next(ColumnType::kText));
  if (builder != nullptr) parts_->AppendText(*builder, value);
  return *this;
}

TableWriter& TableWriter::TextOrNull(std::string_view value) {
  return value.empty() ? Null() : Text(value);
}

TableWriter& TableWriter::Texts(std::span<const std::string> values) {
  if (values.empty()) return Null();
  auto* builder = static_cast<arrow::ListBuilder*>(parts_->Next(ColumnType::kTextList));
  if (builder == nullptr) return *this;
  parts_->status = builder->Append();
  for (const std::string& value : values) {
    if (!parts_->status.ok()) return *this;
    parts_->AppendText(static_cast<arrow::StringBuilder&>(*builder->value_builder()), value);
  }
  return *this;
}

TableWriter& TableWriter::Ints(std::span<const int64_t> values) {
  if (values.empty()) return Null();
  auto* builder = static_cast<arrow::ListBuilder*>(parts_->Next(ColumnType::kInt64List));
  if (builder == nullptr) return *this;
  parts_->status = builder->Append();
  if (!parts_->status.ok()) return *this;
  parts_->group_bytes += values.size_bytes();
  auto& items = static_cast<arrow::Int64Builder&>(*builder->value_builder());
  parts_->status = items.AppendValues(values.data(), static_cast<int64_t>(values.size()));
  return *this;
}

TableWriter& TableWriter::Null() {
  Parts& parts = *parts_;
  if (parts.column == parts.table.columns.size()) {
    parts.status = arrow::Status::TypeError("a row has too many values");
    return *this;
  }
  const ColumnSpec& column = parts.table.columns[parts.column];
  if (column.is_required && parts.status.ok()) {
    parts.status = arrow::Status::Invalid(
        fmt::format("{}.{} must not be null", parts.table.name, column.name));
  }
  arrow::ArrayBuilder* builder = parts.Next(column.type);
  if (builder != nullptr) parts.status = builder->AppendNull();
  return *this;
}

// A row with an error is never written: the export ends with it.
absl::Status TableWriter::EndRow() {
  Parts& parts = *parts_;
  RETURN_IF_ERROR(FromArrow(parts.status));
  if (parts.column != parts.builders.size()) {
    return absl::InternalError(fmt::format("parquet: {}: a row has {} values instead of {}",
                                           parts.table.name, parts.column, parts.builders.size()));
  }
  parts.column = 0;
  ++rows_;
  const bool is_full =
      ++parts.group_rows == kGroupRowsMax || parts.group_bytes >= parts.group_bytes_max;
  return is_full ? parts.WriteGroup() : absl::OkStatus();
}

// The file is the only one if it is the first and did not outgrow its head.
absl::Status TableWriter::Finish() {
  Parts& parts = *parts_;
  if (parts.group_rows > 0) RETURN_IF_ERROR(parts.WriteGroup());
  if (parts.writer == nullptr) return absl::OkStatus();
  return parts.ClosePart(parts.part == 0 && !parts.file->has_name());
}

}  // namespace neurontrace
