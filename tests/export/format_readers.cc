// SPDX-License-Identifier: Apache-2.0
#include "tests/export/format_readers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <tuple>

#include "aggregator/export/events/event_lines.h"
#include "aggregator/export/exporter.h"
#include "tests/e2e/pftrace_check/checker.h"
#include "tests/export/export_fixture.h"

namespace neurontrace {
namespace {

std::string ExportTo(std::string_view format, ChunkSource& source, const TimelineFilter& filter) {
  StringFiles files;
  const auto summary =
      ExportCapture(source, **FindExportFormat(format), {.filter = filter}, files, {});
  EXPECT_TRUE(summary.ok()) << summary.status();
  return files.text();
}

uint64_t NumberIn(const std::map<std::string, std::string>& values, const std::string& key) {
  const auto at = values.find(key);
  if (at == values.end()) return 0;
  uint64_t number = 0;
  std::from_chars(at->second.data(), at->second.data() + at->second.size(), number);
  return number;
}

SeenEvent SeenSlice(const pftrace_check::Slice& slice, bool is_instant) {
  SeenEvent seen;
  seen.id = NumberIn(slice.arguments, "id");
  seen.name = ValidUtf8(slice.name);
  seen.start_ns = slice.start_ns;
  seen.end_ns = slice.end_ns;
  seen.is_instant = is_instant;
  const auto text = [&](const char* key) {
    const auto at = slice.arguments.find(key);
    return at == slice.arguments.end() ? std::string() : at->second;
  };
  seen.instance_id = text("instance_id");
  seen.pid = NumberIn(slice.arguments, "process_id");
  seen.nc_idx = NumberIn(slice.arguments, "nc_idx");
  seen.thread_id = NumberIn(slice.arguments, "thread_id");
  seen.is_open = text("open") == "true";
  seen.is_start_lost = text("start_lost") == "true";
  // More overlap than a trace can show: its length is said in words.
  if (text("squeezed") == "true") seen.end_ns += NumberIn(slice.arguments, "duration");
  for (const auto& [key, value] : slice.arguments) {
    if (key.starts_with(kAttributePrefix)) seen.attributes[key] = ValidUtf8(value);
  }
  return seen;
}

std::vector<SeenEvent> ReadPerfetto(ChunkSource& source, const TimelineFilter& filter) {
  const pftrace_check::Report report = pftrace_check::Check(ExportTo("perfetto", source, filter));
  EXPECT_TRUE(report.errors.empty()) << report.errors.front();
  std::vector<SeenEvent> seen;
  for (const pftrace_check::Track& track : report.tracks) {
    for (const auto& slice : track.slices) seen.push_back(SeenSlice(slice, false));
    for (const auto& instant : track.instants) seen.push_back(SeenSlice(instant, true));
  }
  std::erase_if(seen, [](const SeenEvent& event) { return event.id == 0; });
  return seen;
}

// A value as text, whatever its type.
std::string TextOf(simdjson::dom::element value) {
  switch (value.type()) {
    case simdjson::dom::element_type::STRING:
      return std::string(value.get_string().value());
    case simdjson::dom::element_type::UINT64:
      return fmt::format("{}", value.get_uint64().value());
    case simdjson::dom::element_type::INT64:
      return fmt::format("{}", value.get_int64().value());
    case simdjson::dom::element_type::BOOL:
      return value.get_bool().value() ? "true" : "false";
    default:
      return simdjson::minify(value);
  }
}

std::map<std::string, std::string> ValuesOf(simdjson::dom::object object) {
  std::map<std::string, std::string> values;
  for (const auto& [key, value] : object) {
    const bool is_new = values.emplace(std::string(key), TextOf(value)).second;
    EXPECT_TRUE(is_new) << "twice: " << key;
  }
  return values;
}

void TakeAttributes(const std::map<std::string, std::string>& values, SeenEvent& seen) {
  for (const auto& [key, value] : values) {
    if (key.starts_with(kAttributePrefix)) seen.attributes[key] = value;
  }
}

std::vector<SeenEvent> ReadJson(ChunkSource& source, const TimelineFilter& filter) {
  const std::string text = ExportTo("json", source, filter);
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  const auto error = parser.parse(text).get(document);
  EXPECT_EQ(error, simdjson::SUCCESS);
  if (error != simdjson::SUCCESS) return {};
  std::vector<SeenEvent> seen;
  for (const simdjson::dom::element event : document["trace_event"].get_array()) {
    auto values = ValuesOf(event.get_object());
    SeenEvent one;
    one.id = NumberIn(values, "id");
    if (one.id == 0) continue;
    one.name = values["name"];
    one.instance_id = values["instance_id"];
    one.pid = NumberIn(values, "process_id");
    one.nc_idx = NumberIn(values, "nc_idx");
    one.thread_id = NumberIn(values, "thread_id");
    one.start_ns = NumberIn(values, "timestamp");
    one.end_ns = one.start_ns + NumberIn(values, "duration");
    one.is_instant = values["phase"] == "instant";
    one.is_open = values["open"] == "true";
    one.is_start_lost = values["start_lost"] == "true";
    TakeAttributes(values, one);
    seen.push_back(std::move(one));
  }
  return seen;
}

// Puts together what the `events` format leaves as it was recorded.
class EventPairs {
 public:
  void Add(std::map<std::string, std::string>& line, std::map<std::string, std::string>& event,
           const std::map<std::string, std::string>& data) {
    const uint64_t time_ns = NumberIn(event, "timestamp_ns");
    const uint64_t stream = NumberIn(line, "stream");
    last_ns_[stream] = std::max(last_ns_[stream], time_ns);
    const Key key(stream, event["event_type"], NumberIn(event, "tracking_id"));
    if (event["phase"] == "stop") {
      if (const auto start = open_.find(key); start != open_.end()) {
        start->second.end_ns = time_ns;
        TakeAttributes(data, start->second);
        seen_.push_back(std::move(start->second));
        open_.erase(start);
        return;
      }
    }
    SeenEvent seen;
    seen.id = NumberIn(event, "id");
    seen.name = event["event_type"];
    seen.instance_id = line["instance_id"];
    seen.pid = NumberIn(line, "pid");
    seen.nc_idx = NumberIn(line, "nc_idx");
    seen.thread_id = NumberIn(event, "thread_id");
    seen.start_ns = seen.end_ns = time_ns;
    seen.is_instant = event["phase"] == "instant";
    seen.is_start_lost = event["phase"] == "stop";
    TakeAttributes(data, seen);
    if (event["phase"] == "start") {
      open_.emplace(key, std::move(seen));
    } else {
      seen_.push_back(std::move(seen));
    }
  }

  std::vector<SeenEvent> Take() {
    for (auto& [key, seen] : open_) {
      seen.is_open = true;
      seen.end_ns = last_ns_[std::get<0>(key)];
      seen_.push_back(std::move(seen));
    }
    return std::move(seen_);
  }

 private:
  using Key = std::tuple<uint64_t, std::string, uint64_t>;
  std::map<Key, SeenEvent> open_;
  std::map<uint64_t, uint64_t> last_ns_;
  std::vector<SeenEvent> seen_;
};

std::vector<SeenEvent> ReadEvents(ChunkSource& source, const TimelineFilter& filter) {
  std::string text;
  const auto take = [&](std::string_view piece) {
    text += piece;
    return absl::OkStatus();
  };
  const auto total = WriteEventLines(source, {.filter = filter}, take,
                                     [](const EventLinesTotal&) { return true; });
  EXPECT_TRUE(total.ok()) << total.status();
  EventPairs pairs;
  simdjson::dom::parser parser;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    simdjson::dom::element line;
    const auto error = parser.parse(text.data() + at, end - at).get(line);
    EXPECT_EQ(error, simdjson::SUCCESS) << text.substr(at, std::min<size_t>(end - at, 300));
    if (error != simdjson::SUCCESS) return {};
    at = end + 1;
    std::map<std::string, std::string> head;
    std::map<std::string, std::string> event;
    std::map<std::string, std::string> data;
    for (const auto& [key, value] : line.get_object()) {
      if (key != "event") head.emplace(std::string(key), TextOf(value));
    }
    for (const auto& [key, value] : line["event"].get_object()) {
      if (key == "data") {
        data = ValuesOf(value.get_object());
      } else {
        event.emplace(std::string(key), TextOf(value));
      }
    }
    pairs.Add(head, event, data);
  }
  return pairs.Take();
}

constexpr std::array<FormatReader, 3> kReaders = {
    {{"perfetto", true, ReadPerfetto}, {"json", true, ReadJson}, {"events", false, ReadEvents}}};

}  // namespace

std::span<const FormatReader> FormatReaders() { return kReaders; }

}  // namespace neurontrace
