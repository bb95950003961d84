// SPDX-License-Identifier: Apache-2.0
// Reads trace-event JSON as viewers do: times as doubles of microseconds, processes and threads by
// the names that are said of their numbers, arrows by the slices around their ends.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/export/format_readers.h"

namespace neurontrace {
namespace {

using Row = std::pair<uint64_t, uint64_t>;  // pid and tid, in the file's own numbers

struct ArrowPoint {
  Row row;
  uint64_t at_ns = 0;
  uint64_t id = 0;
  bool is_start = false;
  size_t events_before = 0;  // in the file
};

class ChromeReader {
 public:
  SeenCapture Read(const std::string& text) {
    simdjson::dom::parser parser;
    simdjson::dom::element document;
    const auto error = parser.parse(text).get(document);
    EXPECT_EQ(error, simdjson::SUCCESS) << error;
    if (error != simdjson::SUCCESS) return {};
    base_ns_ = document["baseTimeNanoseconds"].get_uint64().value();
    for (const simdjson::dom::element event : document["traceEvents"].get_array()) Take(event);
    EXPECT_TRUE(async_.empty()) << "asynchronous spans without an end";
    Join();
    return std::move(found_);
  }

 private:
  // A double of microseconds to the third digit behind the point: multiplied by 1,000 it would be
  // rounded twice.
  static uint64_t Nanoseconds(simdjson::dom::element microseconds) {
    std::string digits = fmt::format("{:.3f}", microseconds.get_double().value());
    std::erase(digits, '.');
    return NumberOf(digits);
  }
  uint64_t TimeOf(simdjson::dom::element microseconds) const {
    return base_ns_ + Nanoseconds(microseconds);
  }

  void Take(simdjson::dom::element event) {
    const Row row(event["pid"].get_uint64().value(), event["tid"].get_uint64().value());
    const std::string_view phase = event["ph"].get_string();
    if (phase == "M") return TakeName(event, row);
    if (phase == "C") return TakeCounter(event, row);
    const bool is_end = phase == "f" || phase == "t";
    if (is_end || phase == "s") {
      // The others are made from what the runtime's events say.
      if (TextOf(event["cat"]) != "framework") return;
      EXPECT_NE(phase, "t");
      points_.push_back({row, TimeOf(event["ts"]), event["id"].get_uint64().value(), !is_end,
                         found_.events.size()});
      return;
    }
    if (phase == "e") {
      const auto span = async_.extract(event["id"].get_uint64().value());
      ASSERT_FALSE(span.empty()) << "an asynchronous end without a begin";
      found_.events[span.mapped()].end_ns = TimeOf(event["ts"]);
      return;
    }
    TakeEvent(event, row, phase);
  }

  void TakeName(simdjson::dom::element event, const Row& row) {
    const std::string_view what = event["name"].get_string();
    if (what == "process_name") {
      EXPECT_TRUE(processes_.emplace(row.first, TextOf(event["args"]["name"])).second);
    } else if (what == "thread_name") {
      EXPECT_TRUE(threads_.emplace(row, TextOf(event["args"]["name"])).second);
    }
  }

  // "host_cpu average util_percent", "host_memory used_bytes": of the process "i-0 host".
  void TakeCounter(simdjson::dom::element event, const Row& row) {
    const std::string& process = processes_.at(row.first);
    const std::string instance = process.substr(0, process.rfind(" host"));
    const std::string name = TextOf(event["name"]);
    std::string series;
    if (name.starts_with("host_cpu ") && name.ends_with(" util_percent")) {
      series = "cpu" + name.substr(8, name.rfind(' ') - 8);
    } else if (name == "host_memory used_bytes") {
      series = "memory";
    } else {
      return;
    }
    for (const auto& [key, value] : event["args"].get_object()) {
      found_.samples.insert({instance, series, TimeOf(event["ts"]), value.get_double().value()});
    }
  }

  void TakeEvent(simdjson::dom::element event, const Row& row, std::string_view phase) {
    simdjson::dom::object arguments;
    if (event["args"].get_object().get(arguments) != simdjson::SUCCESS) return;
    const Texts values = ValuesOf(arguments);
    SeenEvent seen;
    seen.category = TextOf(event["cat"]);
    const bool is_framework = seen.category != "neuron_rt" && seen.category != "neuron_hw";
    if (!is_framework) seen.category.clear();
    seen.id = NumberIn(values, is_framework ? "p.id" : "id");
    if (seen.id == 0) return;
    seen.name = TextOf(event["name"]);
    ReadRowName(threads_.at(row), seen);
    // The instances of hostile captures have names of three letters.
    const std::string& process = processes_.at(row.first);
    ReadProcessName(process, process.substr(0, 3), seen);
    seen.start_ns = seen.end_ns = TimeOf(event["ts"]);
    if (phase == "X") {
      seen.end_ns += Nanoseconds(event["dur"]);
    } else if (phase == "b") {
      EXPECT_TRUE(async_.emplace(event["id"].get_uint64().value(), found_.events.size()).second);
    } else {
      EXPECT_EQ(phase, "i");
      seen.is_instant = true;
    }
    seen.is_open = TextIn(values, "open") == "true";
    seen.is_start_lost = TextIn(values, "start_lost") == "true";
    seen.nrta_seq_id = TextIn(values, "nrta_seq_id");
    ReadAttributes(values, seen);
    if (phase == "X") rows_[row].push_back(found_.events.size());
    found_.events.push_back(std::move(seen));
  }

  // The innermost slice of the row at this time. Of those that begin then the ones that
  // precede the point in the file count, as for Perfetto's importer.
  std::optional<size_t> SliceAt(const ArrowPoint& point) const {
    const auto row = rows_.find(point.row);
    if (row == rows_.end()) return std::nullopt;
    std::optional<size_t> around;
    std::optional<size_t> ending;
    for (const size_t index : row->second) {
      const SeenEvent& event = found_.events[index];
      const bool begins = event.start_ns == point.at_ns && index < point.events_before;
      if (!begins && event.start_ns >= point.at_ns) continue;
      const auto is_later = [&](const std::optional<size_t>& other) {
        return !other || event.start_ns >= found_.events[*other].start_ns;
      };
      if ((begins || event.end_ns > point.at_ns) && is_later(around)) around = index;
      if (event.end_ns == point.at_ns && is_later(ending)) ending = index;
    }
    return around ? around : ending;
  }

  // docs/formats/chrome_json.md: an end can precede its start.
  void JoinArrows() {
    std::map<uint64_t, uint64_t> starts;  // ids of events, by arrow
    for (const bool is_start : {true, false}) {
      for (const ArrowPoint& point : points_) {
        if (point.is_start != is_start) continue;
        const auto slice = SliceAt(point);
        ASSERT_TRUE(slice) << "an arrow that touches no slice";
        const uint64_t id = found_.events[*slice].id;
        if (is_start) {
          EXPECT_TRUE(starts.emplace(point.id, id).second) << "two starts of one id";
        } else {
          EXPECT_TRUE(starts.contains(point.id)) << "an end without a start";
          found_.arrows.emplace(starts[point.id], id);
        }
      }
    }
  }

  void Join() {
    for (const auto& [row, events] : rows_) {
      std::vector<std::pair<uint64_t, uint64_t>> drawn;
      for (const size_t index : events) {
        drawn.emplace_back(found_.events[index].start_ns, found_.events[index].end_ns);
      }
      ExpectNested(std::move(drawn), threads_.at(row));
    }
    JoinArrows();
  }

  uint64_t base_ns_ = 0;
  std::map<uint64_t, std::string> processes_;
  std::map<Row, std::string> threads_;
  std::map<Row, std::vector<size_t>> rows_;  // indices of events
  std::map<uint64_t, size_t> async_;
  std::vector<ArrowPoint> points_;
  SeenCapture found_;
};

}  // namespace

SeenCapture ReadChrome(ChunkSource& source, const TimelineFilter& filter) {
  const auto files = ExportFiles("chrome-json", source, {.filter = filter});
  return ChromeReader().Read(files.at("system_profile.trace.json"));
}

}  // namespace neurontrace
