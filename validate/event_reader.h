// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace neurontrace {

// The legacy event in a TrackEvent: what Chrome's trace format of JSON has.
struct ReadLegacyEvent {
  bool is_there = false;
  uint64_t name_iid = 0;
  std::optional<uint64_t> phase;  // a letter
  int64_t duration_us = 0;
  std::optional<uint64_t> id;       // that is nobody's own
  std::optional<uint64_t> bind_id;  // of a flow
  uint64_t direction = 0;           // of that; 0: it says none
  bool binds_enclosing = false;     // an end
  bool is_of_thread = true;         // an instant
  bool has_process = false;         // it names its own, or its thread
};

// The fields of a TrackEvent that are checked. Used again from event to event.
struct ReadEvent {
  uint64_t type = 0;
  ReadLegacyEvent legacy;
  bool has_own_time = false;  // counted from a ThreadDescriptor's, or by MONOTONIC
  std::optional<uint64_t> track_uuid;
  uint64_t name_iid = 0;
  std::string_view name;  // points into the packet; data() is nullptr where there is none
  std::vector<uint64_t> category_iids;
  std::vector<std::string_view> categories;
  std::vector<std::string_view> annotations;
  std::vector<uint64_t> flows;
  std::vector<uint64_t> terminating_flows;
  bool has_counter_value = false;
  bool is_counter_finite = true;
  uint64_t extra_values = 0;
  std::vector<uint64_t> extra_uuids;
  uint64_t extra_double_values = 0;
  std::vector<uint64_t> extra_double_uuids;
  uint32_t extension = 0;  // the number of the first; 0: none
};

// Throws protozero::exception.
void ReadTrackEvent(std::string_view bytes, ReadEvent& out);

// A debug annotation, of which one value is of interest.
struct ReadAnnotation {
  uint64_t name_iid = 0;
  std::string_view name;
  uint64_t string_iid = 0;
  std::optional<uint64_t> number;  // of a number or truth
};
ReadAnnotation ReadDebugAnnotation(std::string_view bytes);

}  // namespace neurontrace
