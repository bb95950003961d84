// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/export/rows/event_attributes.h"

namespace neurontrace {

// What is still to be written of one plane of an XSpace: its lines with their events, and the
// dictionaries of their names. TakeBytes makes an XPlane message of it and leaves the lines without
// events and the dictionaries empty, so that a long plane becomes several messages of one id and
// name, each complete in itself; viewers join them by these. One thread at a time.
class PlaneBuffer {
 public:
  // An event's length in picoseconds has room for 106 days; longer ones are cut to this.
  static constexpr uint64_t kDurationMaxNs = uint64_t{INT64_MAX} / 1'000;

  PlaneBuffer(int64_t id, std::string name) : id_(id), name_(std::move(name)) {}

  struct Event {
    uint64_t start_ns = 0;  // since the origin of the profile
    uint64_t duration_ns = 0;
    uint64_t flow = 0;    // 0: none
    uint64_t number = 0;  // the caller's; 0: none
    uint32_t name = 0;
    uint32_t stats_begin = 0;  // in stats_
    uint32_t stats_end = 0;
  };

  // A new line; `display_id` is unique in the plane, and lines are shown in its order.
  uint32_t AddLine(uint32_t display_id, std::string name);

  // `event` needs its times, its flow and its number.
  void Add(uint32_t line, std::string_view name, Event event,
           const std::vector<EventAttribute>& attributes);
  // Gives the flow to the event of this number if it is one of the latest of the line, is still in
  // the buffer and has no flow; else returns false.
  bool AttachFlow(uint32_t line, uint64_t number, uint64_t flow);

  // A stat of the plane itself.
  void AddPlaneStat(const EventAttribute& attribute);

  size_t buffered_bytes() const { return stats_.size() + events_ * sizeof(Event) + names_bytes_; }
  size_t events() const { return events_; }
  const std::string& name() const { return name_; }
  // The message, of at most about buffered_bytes() and a few bytes for each event.
  std::string TakeBytes();

 private:
  struct Line {
    uint32_t display_id = 0;
    std::string name;
    std::vector<Event> events;
  };
  using Ids = absl::flat_hash_map<std::string, uint32_t>;
  static constexpr size_t kSharedTextBytesMax = 128;  // longer ones are in each stat

  uint32_t IdOf(Ids& ids, std::string_view name);
  void AppendStat(const EventAttribute& attribute, std::string& out);
  // Writes events from `first` on, as far as their offsets from it fit, and returns the next one.
  size_t AppendLine(const Line& line, size_t first, std::string& out);

  const int64_t id_;
  const std::string name_;
  std::vector<Line> lines_;
  std::string stats_;  // of the events, encoded
  std::string plane_stats_;
  Ids event_ids_;
  Ids stat_ids_;
  uint32_t flow_stat_ = 0;
  size_t names_bytes_ = 0;
  size_t events_ = 0;
};

}  // namespace neurontrace
