// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace neurontrace {

// What the values of a counter are.
enum class TrackUnit : uint8_t { kNoCounter, kNone, kNs, kBytes, kBytesPerSecond, kPercent };

// A track of slices, a counter, or a header of tracks. A plain value.
struct ChildTrack {
  uint32_t parent_uuid = 0;  // 0: below none
  std::string name;
  TrackUnit unit = TrackUnit::kNoCounter;
  std::string_view description = {};
  int32_t rank = 0;              // among those of its parent; see track_ranks.h
  bool orders_children = false;  // what hangs from it stands by rank
  std::string_view axis = {};    // counters of one axis are drawn to one scale
};

// The fields of its TrackDescriptor. Pure.
std::string SerializeTrack(uint32_t uuid, const ChildTrack& track);

}  // namespace neurontrace
