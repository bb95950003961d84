// SPDX-License-Identifier: Apache-2.0
// Reads trace-event JSON as viewers do: times as doubles of microseconds, processes and threads by
// the names that are said of their numbers, arrows by the slices that enclose their ends.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "tests/export/format_reading.h"

namespace neurontrace {
namespace {

using Row = std::pair<uint64_t, uint64_t>;  // pid and tid, in the file's own numbers

struct ArrowEnd {
  Row row;
  uint64_t at_ns = 0;
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
      auto& ends = arrows_[event["id"].get_uint64().value()];
      EXPECT_FALSE(!is_end && ends[0]) << "two arrows of one id";
      ends[is_end ? 1 : 0] = ArrowEnd{row, TimeOf(event["ts"])};
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
    TakeRowName(threads_.at(row), seen);
    // The instances of hostile captures have names of three letters.
    const std::string& process = processes_.at(row.first);
    TakeProcessName(process, process.substr(0, 3), seen);
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
    TakeAttributes(values, seen);
    if (phase == "X") rows_[row].push_back(found_.events.size());
    found_.events.push_back(std::move(seen));
  }

  // The innermost slice of the row at this time.
  std::optional<uint64_t> SliceAt(const ArrowEnd& end) const {
    const SeenEvent* innermost = nullptr;
    const auto row = rows_.find(end.row);
    if (row == rows_.end()) return std::nullopt;
    for (const size_t index : row->second) {
      const SeenEvent& event = found_.events[index];
      if (event.start_ns > end.at_ns || event.end_ns < end.at_ns) continue;
      if (innermost == nullptr || event.start_ns >= innermost->start_ns) innermost = &event;
    }
    return innermost == nullptr ? std::nullopt : std::optional(innermost->id);
  }

  void Join() {
    for (const auto& [row, events] : rows_) {
      std::vector<std::pair<uint64_t, uint64_t>> drawn;
      for (const size_t index : events) {
        drawn.emplace_back(found_.events[index].start_ns, found_.events[index].end_ns);
      }
      ExpectNested(std::move(drawn), threads_.at(row));
    }
    for (const auto& [id, ends] : arrows_) {
      if (!ends[0] || !ends[1]) continue;
      const auto from = SliceAt(*ends[0]);
      const auto to = SliceAt(*ends[1]);
      EXPECT_TRUE(from && to) << "an arrow that touches no slice";
      if (from && to) found_.arrows.emplace(*from, *to);
    }
  }

  uint64_t base_ns_ = 0;
  std::map<uint64_t, std::string> processes_;
  std::map<Row, std::string> threads_;
  std::map<Row, std::vector<size_t>> rows_;  // indices of events
  std::map<uint64_t, size_t> async_;
  std::map<uint64_t, std::array<std::optional<ArrowEnd>, 2>> arrows_;
  SeenCapture found_;
};

}  // namespace

SeenCapture ReadChrome(ChunkSource& source, const TimelineFilter& filter) {
  const auto files = ExportFiles("chrome-json", source, {.filter = filter});
  return ChromeReader().Read(files.at("system_profile.trace.json"));
}

}  // namespace neurontrace
