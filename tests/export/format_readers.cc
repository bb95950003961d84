// SPDX-License-Identifier: Apache-2.0
#include "tests/export/format_readers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>

#include "tests/export/export_fixture.h"

namespace neurontrace {
namespace {

// docs/formats/xspace.md: "what is true or false is 1 or 0", and "that an event is an instant, and
// the category of a framework's, has no place".
void ReduceToXSpace(SeenEvent& event) {
  event.is_instant = false;
  event.category.clear();
  std::multiset<std::pair<std::string, std::string>> attributes;
  for (const auto& [name, value] : event.attributes) {
    attributes.emplace(name, value == "true" ? "1" : value == "false" ? "0" : value);
  }
  event.attributes = std::move(attributes);
}

constexpr FormatReader kReaders[] = {
    {.name = "perfetto", .read = ReadPerfetto},
    {.name = "perfetto, gzip", .read = ReadPerfettoGzip},
    {.name = "perfetto, packets", .read = ReadPerfettoPackets},
    // docs/formats/pftrace.md: "Arrows … do not reach from part to part."
    {.name = "perfetto by time", .read = ReadPerfettoByTime, .has_arrows = false},
    {.name = "perfetto by worker", .read = ReadPerfettoByWorker},
    // docs/formats/json.md: "Arrows and counters of framework files have no place here".
    {.name = "json", .read = ReadJson, .has_arrows = false},
    {.name = "chrome-json", .read = ReadChrome},
    {.name = "xspace", .read = ReadXSpaces, .reduce = ReduceToXSpace},
#ifdef NT_HAS_PARQUET
    {.name = "parquet", .read = ReadParquet},
#endif
    {.name = "events", .read = ReadEvents, .has_spans = false, .has_arrows = false},
};

}  // namespace

std::span<const FormatReader> FormatReaders() { return kReaders; }

std::map<std::string, std::string> ExportFiles(std::string_view format, ChunkSource& source,
                                               const ExportRequest& request,
                                               std::vector<std::string>* warnings) {
  StringFiles files;
  const auto summary = ExportCapture(source, **FindExportFormat(format), request, files, {});
  EXPECT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(files.open_files, 0u);
  if (summary.ok()) {
    EXPECT_EQ(summary->progress.bytes_written, files.bytes);
    if (warnings != nullptr) *warnings = summary->warnings;
  }
  return std::move(files.files);
}

uint64_t NumberOf(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string TextIn(const Texts& values, const std::string& key) {
  const auto at = values.find(key);
  return at == values.end() ? std::string() : at->second;
}

uint64_t NumberIn(const Texts& values, const std::string& key) {
  return NumberOf(TextIn(values, key));
}

std::string TextOf(simdjson::dom::element value) {
  switch (value.type()) {
    case simdjson::dom::element_type::STRING:
      return std::string(value.get_string().value());
    case simdjson::dom::element_type::UINT64:
      return fmt::format("{}", value.get_uint64().value());
    case simdjson::dom::element_type::INT64:
      return fmt::format("{}", value.get_int64().value());
    case simdjson::dom::element_type::DOUBLE:
      return fmt::format("{}", value.get_double().value());
    case simdjson::dom::element_type::BOOL:
      return value.get_bool().value() ? "true" : "false";
    default:
      return simdjson::minify(value);
  }
}

Texts ValuesOf(simdjson::dom::object object) {
  Texts values;
  std::string twice;
  for (const auto& [key, value] : object) {
    if (!values.emplace(std::string(key), TextOf(value)).second) twice = key;
  }
  EXPECT_TRUE(twice.empty()) << "twice: " << twice;
  return values;
}

void ReadAttributes(const Texts& values, SeenEvent& seen) {
  for (const auto& [key, value] : values) ReadAttribute(key, value, seen);
}

// "i-0-pid101"; of a framework's "i-0-pid4242 (worker0.pt.trace.json)".
void ReadProcessName(std::string_view label, std::string_view instance_id, SeenEvent& seen) {
  seen.instance_id = instance_id;
  if (!label.starts_with(instance_id)) return;
  label.remove_prefix(instance_id.size());
  constexpr std::string_view kPid = "-pid";
  if (!label.starts_with(kPid)) return;
  seen.process_id = label.substr(kPid.size(), label.rfind(" (worker") - kPid.size());
}

// "gid3-nc3-tid7-neuron_rt (lane 2)"; of a framework's "tid7-framework" or "stream 7-framework".
void ReadRowName(std::string_view row, SeenEvent& seen) {
  row = row.substr(0, row.rfind(" (lane "));
  const bool is_framework = row.ends_with("-framework");
  row = row.substr(0, row.rfind('-'));
  const size_t thread = row.rfind("tid");
  seen.thread_id = row.substr(thread == std::string_view::npos ? 0 : thread + 3);
  if (is_framework) return;
  // "gid3-nc3-tid7-core1-neuron_hw", of a physical core.
  seen.thread_id = seen.thread_id.substr(0, seen.thread_id.find("-core"));
  const size_t core = row.find("-nc");
  if (core == std::string_view::npos) return;
  seen.nc_idx = row.substr(core + 3, row.find('-', core + 3) - core - 3);
}

void ExpectNested(std::vector<std::pair<uint64_t, uint64_t>> spans, std::string_view line) {
  std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  std::vector<uint64_t> ends;
  for (const auto& [begin_ns, end_ns] : spans) {
    while (!ends.empty() && ends.back() <= begin_ns) ends.pop_back();
    if (!ends.empty() && end_ns > ends.back()) {
      ADD_FAILURE() << line << ": [" << begin_ns << ", " << end_ns << "] crosses one that ends at "
                    << ends.back();
      return;
    }
    if (end_ns > begin_ns) ends.push_back(end_ns);
  }
}

}  // namespace neurontrace
