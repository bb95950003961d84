// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/export/rows/event_attributes.h"

namespace neurontrace {

// The part of one plane of an XSpace that is not written yet: its lines with their events, and the
// dictionaries of their names. TakeBytes makes an XPlane message of it and leaves the lines without
// events and the dictionaries empty. A long plane thus becomes several messages with one id and
// name, each complete in itself; viewers merge them. Used by one thread at a time.
class PlaneBuffer {
 public:
  // The format has lengths in picoseconds, which have room for 106 days; longer ones are cut to
  // this.
  static constexpr uint64_t kDurationMaxNs = uint64_t{INT64_MAX} / 1'000;

  PlaneBuffer(int64_t id, std::string name) : id_(id), name_(std::move(name)) {}

  // An event whose stats are encoded in stats_.
  struct Event {
    // Since the origin of the profile.
    uint64_t start_ns = 0;
    uint64_t duration_ns = 0;
    uint64_t flow = 0;  // 0: none
    // Assigned by the caller; 0: none.
    uint64_t number = 0;
    uint32_t name = 0;
    // The range of its stats in stats_.
    uint32_t stats_begin = 0;
    uint32_t stats_end = 0;
  };

  // Adds a line and returns its index. `display_id` must be unique in the plane; lines are shown in
  // its order.
  uint32_t AddLine(uint32_t display_id, std::string name);

  // Adds an event; only its times, flow and number must be set.
  void Add(uint32_t line, std::string_view name, Event event,
           const std::vector<EventAttribute>& attributes);
  // Gives the flow to the event with this number if it is one of the latest of the line, is still
  // in the buffer and has no flow. Returns false otherwise.
  bool AttachFlow(uint32_t line, uint64_t number, uint64_t flow);

  // Adds a stat of the plane itself.
  void AddPlaneStat(const EventAttribute& attribute);

  size_t buffered_bytes() const { return stats_.size() + events_ * sizeof(Event) + names_bytes_; }
  size_t events() const { return events_; }
  const std::string& name() const { return name_; }
  // Returns the message, whose size is about buffered_bytes() plus a few bytes for each event.
  std::string TakeBytes();

 private:
  struct Line {
    // Also the line's id in the format.
    uint32_t display_id = 0;
    std::string name;
    // In the order of Add; sorted when the message is made.
    std::vector<Event> events;
  };
  using Ids = absl::flat_hash_map<std::string, uint32_t>;
  // Longer texts are repeated in each stat instead of being shared.
  static constexpr size_t kSharedTextBytesMax = 128;

  // Returns the name's id in the dictionary, adding it if necessary.
  uint32_t IdOf(Ids& ids, std::string_view name);
  void AppendStat(const EventAttribute& attribute, std::string& out);
  // Writes events from `first` on, as far as their offsets from it fit, and returns the next one.
  size_t AppendLine(const Line& line, size_t first, std::string& out);

  const int64_t id_;
  const std::string name_;
  std::vector<Line> lines_;
  // Encoded stats of the events.
  std::string stats_;
  // Encoded stats of the plane, for the next message only.
  std::string plane_stats_;
  // The dictionaries of the next message; ids count from 1.
  Ids event_ids_;
  Ids stat_ids_;
  uint32_t flow_stat_ = 0;
  // Roughly the memory of both dictionaries.
  size_t names_bytes_ = 0;
  size_t events_ = 0;
};

}  // namespace neurontrace
