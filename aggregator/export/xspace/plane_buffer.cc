// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/xspace/plane_buffer.h"

#include <algorithm>
#include <bit>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <utility>

#include "absl/strings/string_view.h"
#include "aggregator/export/json/json_text.h"
#include "aggregator/export/xspace/xspace_fields.h"

namespace neurontrace {
namespace {

constexpr uint64_t kPsPerNs = 1'000;
// Events of a line that AttachFlow examines: arrows end at recent spans.
constexpr size_t kLookbackMax = 64;

// Returns the format's unit; what exceeds kDurationMaxNs is cut.
int64_t Picoseconds(uint64_t ns) {
  return static_cast<int64_t>(std::min(ns, PlaneBuffer::kDurationMaxNs) * kPsPerNs);
}

// Protobuf refuses a message with a string field that is not UTF-8.
std::string Utf8(std::string_view text) {
  std::string out;
  AppendRepairedUtf8(text, out);
  return out;
}

// Appends a dictionary as the map field that the format has it in.
void AppendMetadata(uint32_t field, const absl::flat_hash_map<std::string, uint32_t>& ids,
                    std::string& out) {
  // Sorted, so that equal captures give equal files.
  std::map<uint32_t, std::string_view> by_id;
  for (const auto& [name, id] : ids) by_id[id] = name;
  protozero::pbf_writer plane(out);
  for (const auto& [id, name] : by_id) {
    std::string value;
    protozero::pbf_writer about(value);
    about.add_int64(xspace::metadata::kId, id);
    about.add_string(xspace::metadata::kName, Utf8(name));
    protozero::pbf_writer entry(plane, field);
    entry.add_int64(xspace::map_entry::kKey, id);
    entry.add_message(xspace::map_entry::kValue, value);
  }
}

}  // namespace

uint32_t PlaneBuffer::AddLine(uint32_t display_id, std::string name) {
  lines_.push_back({display_id, std::move(name), {}});
  return static_cast<uint32_t>(lines_.size() - 1);
}

uint32_t PlaneBuffer::IdOf(Ids& ids, std::string_view name) {
  const auto known = ids.find(absl::string_view(name.data(), name.size()));
  if (known != ids.end()) return known->second;
  // Once in the table and once in the message, with some overhead.
  names_bytes_ += 2 * name.size() + 64;
  const auto id = static_cast<uint32_t>(ids.size() + 1);
  ids.emplace(std::string(name), id);
  return id;
}

// Texts are references to names of stats, as the format itself shares them.
void PlaneBuffer::AppendStat(const EventAttribute& attribute, std::string& out) {
  protozero::pbf_writer stat(out);
  stat.add_int64(xspace::stat::kMetadataId, IdOf(stat_ids_, attribute.name));
  switch (attribute.type) {
    case ValueType::kBool:
    case ValueType::kUint:
      stat.add_uint64(xspace::stat::kUint64, attribute.value);
      return;
    case ValueType::kInt:
      stat.add_int64(xspace::stat::kInt64, static_cast<int64_t>(attribute.value));
      return;
    case ValueType::kDouble:
      stat.add_double(xspace::stat::kDouble, std::bit_cast<double>(attribute.value));
      return;
    case ValueType::kNull:
      stat.add_uint64(xspace::stat::kReference, IdOf(stat_ids_, "null"));
      return;
    case ValueType::kString:
    case ValueType::kJson:
      break;
  }
  if (attribute.text.size() <= kSharedTextBytesMax) {
    stat.add_uint64(xspace::stat::kReference, IdOf(stat_ids_, attribute.text));
  } else {
    stat.add_string(xspace::stat::kString, Utf8(attribute.text));
  }
}

// Stats are encoded at once, because attributes point into the current record.
void PlaneBuffer::Add(uint32_t line, std::string_view name, Event event,
                      const std::vector<EventAttribute>& attributes) {
  event.name = IdOf(event_ids_, name);
  event.stats_begin = static_cast<uint32_t>(stats_.size());
  std::string stat;
  protozero::pbf_writer stats(stats_);
  for (const EventAttribute& attribute : attributes) {
    stat.clear();
    AppendStat(attribute, stat);
    stats.add_message(xspace::event::kStats, stat);
  }
  event.stats_end = static_cast<uint32_t>(stats_.size());
  lines_[line].events.push_back(event);
  ++events_;
}

bool PlaneBuffer::AttachFlow(uint32_t line, uint64_t number, uint64_t flow) {
  auto& events = lines_[line].events;
  const size_t first = events.size() - std::min(events.size(), kLookbackMax);
  for (size_t i = events.size(); i > first; --i) {
    Event& event = events[i - 1];
    if (event.number != number) continue;
    if (event.flow != 0) return false;
    event.flow = flow;
    return true;
  }
  return false;
}

void PlaneBuffer::AddPlaneStat(const EventAttribute& attribute) {
  std::string stat;
  AppendStat(attribute, stat);
  protozero::pbf_writer(plane_stats_).add_message(xspace::plane::kStats, stat);
}

// Offsets count from the line's first event, because picoseconds since the epoch need more than 64
// bits.
size_t PlaneBuffer::AppendLine(const Line& line, size_t first, std::string& out) {
  const uint64_t begin_ns = line.events[first].start_ns;
  protozero::pbf_writer writer(out);
  writer.add_int64(xspace::line::kId, line.display_id);
  writer.add_int64(xspace::line::kDisplayId, line.display_id);
  writer.add_string(xspace::line::kName, Utf8(line.name));
  writer.add_int64(xspace::line::kTimestampNs, static_cast<int64_t>(begin_ns));
  std::string bytes;
  size_t next = first;
  for (; next < line.events.size(); ++next) {
    const Event& event = line.events[next];
    if (event.start_ns - begin_ns > kDurationMaxNs) break;
    bytes.clear();
    protozero::pbf_writer about(bytes);
    about.add_int64(xspace::event::kMetadataId, event.name);
    about.add_int64(xspace::event::kOffsetPs, Picoseconds(event.start_ns - begin_ns));
    about.add_int64(xspace::event::kDurationPs, Picoseconds(event.duration_ns));
    if (event.flow != 0) {
      protozero::pbf_writer stat(about, xspace::event::kStats);
      stat.add_int64(xspace::stat::kMetadataId, flow_stat_);
      stat.add_uint64(xspace::stat::kUint64, event.flow);
    }
    bytes.append(stats_, event.stats_begin, event.stats_end - event.stats_begin);
    writer.add_message(xspace::line::kEvents, bytes);
  }
  return next;
}

// Dictionaries are written after the lines, when they are complete. Fields of protobuf may come in
// any order.
std::string PlaneBuffer::TakeBytes() {
  // For each message, because its dictionaries start empty.
  flow_stat_ = IdOf(stat_ids_, xspace::kFlowStat);
  std::string out;
  protozero::pbf_writer plane(out);
  plane.add_int64(xspace::plane::kId, id_);
  plane.add_string(xspace::plane::kName, Utf8(name_));
  for (Line& line : lines_) {
    std::stable_sort(line.events.begin(), line.events.end(), [](const Event& a, const Event& b) {
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.duration_ns > b.duration_ns;
    });
    // A line becomes several messages if its events are further apart than offsets can express.
    for (size_t first = 0; first < line.events.size();) {
      std::string bytes;
      first = AppendLine(line, first, bytes);
      plane.add_message(xspace::plane::kLines, bytes);
    }
    line.events = {};
  }
  AppendMetadata(xspace::plane::kEventMetadata, event_ids_, out);
  AppendMetadata(xspace::plane::kStatMetadata, stat_ids_, out);
  out += plane_stats_;
  stats_ = {};
  plane_stats_.clear();
  event_ids_.clear();
  stat_ids_.clear();
  names_bytes_ = 0;
  events_ = 0;
  return out;
}

}  // namespace neurontrace
