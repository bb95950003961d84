// SPDX-License-Identifier: Apache-2.0
// Reads XSpace files as viewers do: each a row of planes, lines and events.
#include <gtest/gtest.h>

#include "tests/export/format_readers.h"
#include "tests/export/xspace_reader.h"

namespace neurontrace {
namespace {

constexpr std::string_view kPrefix = "/device:CUSTOM:";
constexpr uint64_t kIn = 1;
constexpr uint64_t kOut = 2;

struct FlowEnds {
  std::vector<uint64_t> out;  // ids of events
  std::vector<uint64_t> in;
};

class XSpaceTraceReader {
 public:
  void Take(const XSpace& space) {
    ASSERT_EQ(space.hostnames.size(), 1u);
    const std::string& instance = space.hostnames.front();
    uint64_t origin_ns = 0;
    for (const XPlane& plane : space.planes) {
      const auto start = plane.stats.find("profile_start_time");
      if (start != plane.stats.end()) origin_ns = NumberOf(start->second);
    }
    ASSERT_NE(origin_ns, 0u);
    for (const XPlane& plane : space.planes) {
      if (!plane.name.starts_with(kPrefix)) continue;
      for (const auto& [name, events] : plane.lines) {
        std::vector<std::pair<uint64_t, uint64_t>> drawn;
        for (const XEvent& event : events) {
          const uint64_t at_ns = origin_ns + static_cast<uint64_t>(event.start_ns);
          drawn.emplace_back(at_ns, at_ns + static_cast<uint64_t>(event.duration_ns));
          if (name == "_counters_") {
            TakeCounter(event, instance, at_ns);
          } else {
            TakeEvent(event, plane.name.substr(kPrefix.size()), name, instance, drawn.back());
          }
        }
        TakeCarriers(events);
        ExpectNested(std::move(drawn), plane.name + " " + name);
      }
    }
  }

  SeenCapture Finish() {
    for (const auto& [flow, ends] : flows_) {
      for (const uint64_t from : ends.out) {
        for (const uint64_t to : ends.in) found_.arrows.emplace(from, to);
      }
    }
    return std::move(found_);
  }

 private:
  void TakeEvent(const XEvent& event, const std::string& process, const std::string& row,
                 const std::string& instance, const std::pair<uint64_t, uint64_t>& times) {
    const bool is_framework = event.stats.contains("p.id");
    SeenEvent seen;
    seen.id = NumberIn(event.stats, is_framework ? "p.id" : "id");
    if (seen.id == 0) return;
    seen.name = event.name;
    ReadProcessName(process, instance, seen);
    ReadRowName(row, seen);
    std::tie(seen.start_ns, seen.end_ns) = times;
    // docs/formats/xspace.md: "A span that finds no lane has no length but a stat
    // `squeezed_duration_ns`."
    seen.end_ns += NumberIn(event.stats, "squeezed_duration_ns");
    seen.is_open = TextIn(event.stats, "open") == "1";
    seen.is_start_lost = TextIn(event.stats, "start_lost") == "1";
    seen.nrta_seq_id = TextIn(event.stats, "nrta_seq_id");
    ReadAttributes(event.stats, seen);
    if (is_framework) TakeFlow(NumberIn(event.stats, "flow"), seen.id);
    found_.events.push_back(std::move(seen));
  }

  void TakeFlow(uint64_t flow, uint64_t id) {
    if ((flow & kOut) != 0) flows_[flow >> 2].out.push_back(id);
    if ((flow & kIn) != 0) flows_[flow >> 2].in.push_back(id);
  }

  // docs/formats/xspace.md: an event without length carries what its span could not take: the
  // innermost one around it on its line that is `span_duration_ns` long.
  void TakeCarriers(const std::vector<XEvent>& events) {
    for (const XEvent& carrier : events) {
      const uint64_t flow = NumberIn(carrier.stats, "flow");
      if (flow == 0 || carrier.stats.contains("p.id") || carrier.stats.contains("id")) continue;
      const XEvent* innermost = nullptr;
      for (const XEvent& event : events) {
        if (!event.stats.contains("p.id") || event.start_ns > carrier.start_ns ||
            event.start_ns + event.duration_ns < carrier.start_ns) {
          continue;
        }
        const uint64_t duration_ns = NumberIn(carrier.stats, "span_duration_ns");
        if (static_cast<uint64_t>(event.duration_ns) != duration_ns) continue;
        if (innermost == nullptr || event.start_ns > innermost->start_ns) {
          innermost = &event;
        }
      }
      ASSERT_NE(innermost, nullptr) << "an arrow in no span";
      TakeFlow(flow, NumberIn(innermost->stats, "p.id"));
    }
  }

  void TakeCounter(const XEvent& event, const std::string& instance, uint64_t at_ns) {
    // docs/formats/xspace.md: each series is an event. Of the memory's the bytes are compared.
    const bool is_cpu = event.name.starts_with("host_cpu ");
    if (!is_cpu && !event.stats.contains("used_bytes")) return;
    found_.samples.insert({instance, is_cpu ? "cpu " + event.name.substr(9) : "memory", at_ns,
                           std::stod(TextIn(event.stats, is_cpu ? "util_percent" : "used_bytes"))});
  }

  std::map<uint64_t, FlowEnds> flows_;
  SeenCapture found_;
};

}  // namespace

SeenCapture ReadXSpaces(ChunkSource& source, const TimelineFilter& filter) {
  XSpaceTraceReader reader;
  for (const auto& [name, bytes] : ExportFiles("xspace", source, {.filter = filter})) {
    EXPECT_TRUE(name.starts_with("plugins/profile/") && name.ends_with(".xplane.pb")) << name;
    reader.Take(ReadSpace(bytes));
  }
  return reader.Finish();
}

}  // namespace neurontrace
