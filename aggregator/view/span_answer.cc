// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/span_answer.h"

#include <bit>
#include <cstring>

#include "aggregator/timeline/chunk_source.h"
#include "lib/base/json_writer.h"

namespace neurontrace {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are copied as they are");

constexpr size_t kAlignment = 8;

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

template <typename Element>
size_t ColumnBytes(const std::vector<Element>& column) {
  return Aligned(column.size() * sizeof(Element));
}

size_t RowBytes(const SpanRow& row) {
  if (row.counters.size() != 0) {
    return ColumnBytes(row.counters.start) + ColumnBytes(row.counters.value);
  }
  const SpanColumns& spans = row.spans;
  return ColumnBytes(spans.start) + ColumnBytes(spans.duration) + ColumnBytes(spans.count) +
         ColumnBytes(spans.name) + ColumnBytes(spans.depth) + ColumnBytes(spans.flags);
}

template <typename Element>
void AppendColumn(const std::vector<Element>& column, std::string& out) {
  const size_t bytes = column.size() * sizeof(Element);
  out.append(reinterpret_cast<const char*>(column.data()), bytes);
  out.append(Aligned(bytes) - bytes, '\0');
}

void AppendRow(const SpanRow& row, std::string& out) {
  if (row.counters.size() != 0) {
    AppendColumn(row.counters.start, out);
    AppendColumn(row.counters.value, out);
    return;
  }
  AppendColumn(row.spans.start, out);
  AppendColumn(row.spans.duration, out);
  AppendColumn(row.spans.count, out);
  AppendColumn(row.spans.name, out);
  AppendColumn(row.spans.depth, out);
  AppendColumn(row.spans.flags, out);
}

// Writes the description of a row whose columns begin `offset` bytes after the header.
void DescribeRow(const SpanRow& row, size_t offset, JsonWriter& json) {
  const bool is_counter = row.counters.size() != 0;
  json.Open('{')
      .Member("stream", row.stream)
      .Member("row", row.id)
      .Member("name", row.name)
      .Member("source", row.source)
      .Member("order", row.order)
      .Member("depth", row.depth)
      .Member("mode", row.is_merged ? "bins" : "exact")
      .Member("events", fmt::format("{}", row.events))
      .Member("items", is_counter ? row.counters.size() : row.spans.size())
      .Member("offset", offset);
  if (is_counter) {
    json.Member("unit", row.unit).Key("max").Json(fmt::format("{}", row.counter_max));
  }
  json.Close('}');
}

std::string HeaderOf(const SpanAnswer& answer, uint64_t version) {
  JsonWriter json;
  json.Open('{')
      .Member("from", fmt::format("{}", answer.from_ns))
      .Member("to", fmt::format("{}", answer.to_ns))
      .Member("version", fmt::format("{}", version))
      .Member("unit_ns", answer.unit_ns)
      .Member("names", answer.names)
      .Member("categories", answer.categories);
  json.Key("name_category").Open('[');
  for (const uint16_t category : answer.name_category) json.Value(category);
  json.Close(']').Key("rows").Open('[');
  size_t offset = 0;
  for (const SpanRow& row : answer.rows) {
    DescribeRow(row, offset, json);
    offset += RowBytes(row);
  }
  json.Close(']').Key("cut");
  answer.cut.empty() ? json.Json("null") : json.Value(answer.cut);
  json.Member("scanned_chunks", answer.chunks_read)
      .Member("digested_chunks", answer.digested_chunks)
      .Member("unreadable_chunks", answer.unreadable_chunks)
      .Member("warnings", answer.warnings)
      .Close('}');
  return json.Take();
}

}  // namespace

uint64_t ViewRowId(std::string_view process, std::string_view name) {
  constexpr int kBitsBeyondDouble = 12;
  return HashEventType(fmt::format("{}\n{}", process, name)) >> kBitsBeyondDouble;
}

std::string ViewFrame(std::string_view json_header) {
  std::string out = "NTV1";
  const auto length = static_cast<uint32_t>(json_header.size());
  out.append(reinterpret_cast<const char*>(&length), sizeof length);
  out += json_header;
  // Columns begin at a multiple of their alignment, so that a browser can use them in place.
  out.append(Aligned(out.size()) - out.size(), '\0');
  return out;
}

std::string EncodeSpans(const SpanAnswer& answer, uint64_t version) {
  std::string out = ViewFrame(HeaderOf(answer, version));
  for (const SpanRow& row : answer.rows) AppendRow(row, out);
  return out;
}

}  // namespace neurontrace
