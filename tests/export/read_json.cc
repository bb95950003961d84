// SPDX-License-Identifier: Apache-2.0
// Reads the JSON profile and the lines of events, with simdjson.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "aggregator/export/events/event_lines.h"
#include "tests/export/format_readers.h"

namespace neurontrace {
namespace {

SeenEvent SeenObject(const Texts& values) {
  SeenEvent seen;
  const bool is_framework = TextIn(values, "trace_event_source") == "framework";
  seen.id = NumberIn(values, is_framework ? "p.id" : "id");
  seen.name = TextIn(values, "name");
  if (is_framework) seen.category = TextIn(values, "category");
  seen.instance_id = TextIn(values, "instance_id");
  seen.process_id = TextIn(values, "process_id");
  seen.nc_idx = TextIn(values, "nc_idx");
  seen.thread_id = TextIn(values, "thread_id");
  seen.start_ns = NumberIn(values, "timestamp");
  seen.end_ns = seen.start_ns + NumberIn(values, "duration");
  seen.is_instant = TextIn(values, "phase") == "instant";
  seen.is_open = TextIn(values, "open") == "true";
  seen.is_start_lost = TextIn(values, "start_lost") == "true";
  seen.nrta_seq_id = TextIn(values, "nrta_seq_id");
  ReadAttributes(values, seen);
  return seen;
}

// Puts together what the `events` format leaves as it was recorded.
class EventPairs {
 public:
  void Add(const Texts& line, const Texts& event, const Texts& data) {
    if (line.contains("host")) return AddSamples(line, event, data);
    const std::string phase = TextIn(event, "phase");
    if (phase == "flow_start" || phase == "flow_end") return;
    const uint64_t time_ns = NumberIn(event, "timestamp_ns");
    const uint64_t stream = NumberIn(line, "stream");
    last_ns_[stream] = std::max(last_ns_[stream], time_ns);
    const Key key(stream, TextIn(event, "event_type"), NumberIn(event, "tracking_id"));
    if (phase == "stop") {
      if (const auto start = open_.find(key); start != open_.end()) {
        start->second.end_ns = time_ns;
        ReadAttributes(data, start->second);
        found_.events.push_back(std::move(start->second));
        open_.erase(start);
        return;
      }
    }
    SeenEvent seen = line.contains("file") ? FrameworkEvent(event, data) : CoreEvent(line, event);
    seen.instance_id = TextIn(line, "instance_id");
    seen.start_ns = time_ns;
    seen.end_ns = time_ns + NumberIn(event, "dur_ns");
    seen.is_instant = phase == "instant";
    seen.is_start_lost = phase == "stop";
    ReadAttributes(data, seen);
    ReadAttributes(event, seen);  // those that are beside its data
    if (phase == "start") {
      open_.emplace(key, std::move(seen));
    } else {
      found_.events.push_back(std::move(seen));
    }
  }

  SeenCapture Take() {
    for (auto& [key, seen] : open_) {
      seen.is_open = true;
      seen.end_ns = last_ns_[std::get<0>(key)];
      found_.events.push_back(std::move(seen));
    }
    return std::move(found_);
  }

 private:
  static SeenEvent CoreEvent(const Texts& line, const Texts& event) {
    SeenEvent seen;
    seen.id = NumberIn(event, "id");
    seen.name = TextIn(event, "event_type");
    seen.process_id = TextIn(line, "pid");
    seen.nc_idx = TextIn(line, "nc_idx");
    seen.thread_id = TextIn(event, "thread_id");
    seen.nrta_seq_id = TextIn(event, "nrta_seq_id");
    return seen;
  }
  static SeenEvent FrameworkEvent(const Texts& event, const Texts& data) {
    SeenEvent seen;
    seen.id = NumberIn(data, "p.id");
    seen.name = TextIn(event, "name");
    seen.category = TextIn(event, "event_type");
    seen.process_id = TextIn(event, "pid");
    seen.thread_id = TextIn(event, event.contains("thread_id") ? "thread_id" : "tid");
    return seen;
  }
  void AddSamples(const Texts& line, const Texts& event, const Texts& data) {
    const bool is_cpu = TextIn(event, "event_type") == "host_cpu";
    found_.samples.insert({TextIn(line, "instance_id"),
                           is_cpu ? "cpu " + TextIn(data, "cpu_id") : "memory",
                           NumberIn(event, "timestamp_ns"),
                           std::stod(TextIn(data, is_cpu ? "util_percent" : "used_bytes"))});
  }

  using Key = std::tuple<uint64_t, std::string, uint64_t>;
  std::map<Key, SeenEvent> open_;
  std::map<uint64_t, uint64_t> last_ns_;
  SeenCapture found_;
};

}  // namespace

SeenCapture ReadJson(ChunkSource& source, const TimelineFilter& filter) {
  const auto files = ExportFiles("json", source, {.filter = filter});
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  const auto error = parser.parse(files.at("system_profile.json")).get(document);
  EXPECT_EQ(error, simdjson::SUCCESS) << error;
  if (error != simdjson::SUCCESS) return {};
  SeenCapture found;
  for (const simdjson::dom::element event : document["trace_event"].get_array()) {
    SeenEvent seen = SeenObject(ValuesOf(event.get_object()));
    if (seen.id != 0) found.events.push_back(std::move(seen));
  }
  for (const simdjson::dom::element sample : document["cpu_util"].get_array()) {
    const Texts values = ValuesOf(sample.get_object());
    found.samples.insert({TextIn(values, "instance_id"), "cpu " + TextIn(values, "cpu_id"),
                          NumberIn(values, "timestamp"), std::stod(TextIn(values, "util"))});
  }
  for (const simdjson::dom::element sample : document["mem_usage"].get_array()) {
    const Texts values = ValuesOf(sample.get_object());
    found.samples.insert({TextIn(values, "instance_id"), "memory", NumberIn(values, "timestamp"),
                          std::stod(TextIn(values, "usage"))});
  }
  return found;
}

SeenCapture ReadEvents(ChunkSource& source, const TimelineFilter& filter) {
  std::string text;
  const auto take = [&](std::string_view piece) {
    text += piece;
    return absl::OkStatus();
  };
  TimelineFilter with_hosts = filter;
  with_hosts.host_samples = true;
  const auto total = WriteEventLines(source, {.filter = with_hosts}, take,
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
    Texts head;
    Texts event;
    Texts data;
    for (const auto& [key, value] : line.get_object()) {
      if (key != "event") head.emplace(std::string(key), TextOf(value));
    }
    for (const auto& [key, value] : line["event"].get_object()) {
      if (key == "data" && value.is_object()) {
        data = ValuesOf(value.get_object());
      } else {
        EXPECT_TRUE(event.emplace(std::string(key), TextOf(value)).second) << "twice: " << key;
      }
    }
    pairs.Add(head, event, data);
  }
  return pairs.Take();
}

}  // namespace neurontrace
