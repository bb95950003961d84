// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_string.h"
#include "tests/e2e/pftrace_check/checker.h"

namespace neurontrace::pftrace_check {
namespace {

std::string Numbers(const std::vector<uint64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

std::string SliceJson(const Slice& slice) {
  std::string arguments;
  for (const auto& [name, value] : slice.arguments) {
    arguments +=
        fmt::format("{}{}:{}", arguments.empty() ? "" : ",", JsonText(name), JsonText(value));
  }
  return fmt::format(R"({{"name":{},"category":{},"start_ns":{},"end_ns":{},"depth":{},"flows":{},)"
                     R"("terminating_flows":{},"arguments":{{{}}}}})",
                     JsonText(slice.name), JsonText(slice.category), slice.start_ns, slice.end_ns,
                     slice.depth, Numbers(slice.flows), Numbers(slice.terminating_flows),
                     arguments);
}

std::string SlicesJson(const std::vector<Slice>& slices) {
  std::string out = "[";
  for (const Slice& slice : slices) {
    if (out.size() > 1) out += ",\n";
    out += SliceJson(slice);
  }
  return out + "]";
}

std::string TrackJson(const Track& track) {
  return fmt::format(
      R"({{"uuid":{},"name":{},"process":{},"parent":{},"rank":{},"row":{},"description":{},)"
      R"("is_thread":{},)"
      R"("is_counter":{},"tid":{},"slice_count":{},"instant_count":{},"counter_count":{},)"
      "\n\"slices\":{},\n\"instants\":{}}}",
      track.uuid, JsonText(track.name), JsonText(track.process), JsonText(track.parent), track.rank,
      JsonText(track.row), JsonText(track.description), track.is_thread, track.is_counter,
      track.tid, track.slices.size(), track.instants.size(), track.counter.size(),
      SlicesJson(track.slices), SlicesJson(track.instants));
}

}  // namespace

std::string ToText(const Report& report) {
  std::string out = fmt::format(
      "{} bytes, {} packets, {} sequence headers\n{} slices, {} instants, {} counter values, {} "
      "arguments\n{} arrow ends, {} arrows, {} ids with one end only\n",
      report.bytes, report.packets, report.generations, report.slices, report.instants,
      report.counters, report.arguments, report.flow_points, report.flow_arrows,
      report.lone_flow_points);
  for (const auto& [key, value] : report.attributes) out += fmt::format("{}: {}\n", key, value);
  for (const Track& track : report.tracks) {
    out += fmt::format("{}{}{}{}: {} slices, {} instants{}{}\n",
                       track.process == track.name || track.process.empty() ? "" : "  ", track.name,
                       track.ranks.empty() ? "" : " " + track.ranks,
                       track.parent.empty() ? "" : " < " + track.parent, track.slices.size(),
                       track.instants.size(),
                       track.is_counter ? fmt::format(", {} values", track.counter.size()) : "",
                       track.description.empty() ? "" : " (" + track.description + ")");
  }
  for (const std::string& error : report.errors) out += "WRONG " + error + "\n";
  return out + fmt::format("{} wrong\n", report.error_count);
}

std::string ToJson(const Report& report) {
  std::string out = fmt::format(
      R"({{"bytes":{},"packets":{},"generations":{},"slices":{},"instants":{},"counters":{},)"
      R"("arguments":{},"flow_points":{},"flow_arrows":{},"lone_flow_points":{},"error_count":{})",
      report.bytes, report.packets, report.generations, report.slices, report.instants,
      report.counters, report.arguments, report.flow_points, report.flow_arrows,
      report.lone_flow_points, report.error_count);
  const auto list = [&out](std::string_view name, const auto& items, auto text) {
    out += fmt::format(",\n\"{}\":[", name);
    const char* comma = "";
    for (const auto& item : items) {
      out += comma + text(item);
      comma = ",\n";
    }
    out += "]";
  };
  list("errors", report.errors, [](const std::string& text) { return JsonText(text); });
  list("processes", report.processes, [](const std::string& text) { return JsonText(text); });
  list("tracks", report.tracks, TrackJson);
  list("attributes", report.attributes, [](const auto& entry) {
    return fmt::format("[{},{}]", JsonText(entry.first), JsonText(entry.second));
  });
  return out + "}\n";
}

}  // namespace neurontrace::pftrace_check
