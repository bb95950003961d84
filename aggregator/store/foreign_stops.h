// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/trace/event_chunk.h"

namespace neurontrace {

// The stop events of a chunk whose start is not in the same chunk, in the order of the chunk, at
// most one entry per event. By them a reader finds the end of a span that crosses chunks without
// decoding chunks ahead (docs/decisions/0003). The chunk's event types are listed so that a reader
// of other types can skip it. A plain value.
struct ForeignStops {
  // Bytes of all names together. A chunk whose event types need more lists only those of its stops.
  static constexpr size_t kListedTypesBytesMax = 1'024;

  // One stop.
  struct Entry {
    uint32_t type = 0;  // index into event_types
    uint64_t tracking_id = 0;
    uint64_t timestamp_ns = 0;  // raw, not decreasing from entry to entry
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::vector<std::string> event_types;
  std::vector<Entry> entries;
  // Whether `event_types` has all types of the chunk, in the order of its shapes, or only those of
  // the entries.
  bool has_all_types = false;

  friend bool operator==(const ForeignStops&, const ForeignStops&) = default;
};

// Finds the foreign stops of chunks. A stop belongs to its chunk if a start of the same event type
// and tracking id precedes it and no other stop has been matched with that start. Keeps its memory
// from chunk to chunk, about 256 KiB. One thread at a time.
class ForeignStopFinder {
 public:
  ForeignStopFinder();
  ~ForeignStopFinder();
  ForeignStopFinder(const ForeignStopFinder&) = delete;
  ForeignStopFinder& operator=(const ForeignStopFinder&) = delete;

  // Runs in time proportional to the chunk's events. The chunk is only read during the call.
  ForeignStops Find(const DecodedChunk& chunk);

 private:
  // Open starts of one type and tracking id.
  struct Slot {
    uint64_t tracking_id = 0;
    uint16_t type = 0;
    uint16_t open = 0;        // starts without a stop so far
    uint32_t generation = 0;  // of an earlier chunk: the slot is free
  };
  // Starts of the tracking id that a type used last. Most spans end before the next one of their
  // type begins, and so never enter the table.
  struct Latest {
    uint64_t tracking_id = 0;
    uint32_t open = 0;
  };
  // Returns the slot of this type and id, or a free one for it.
  Slot& Lookup(uint16_t type, uint64_t tracking_id);
  // Counts a start event.
  void Start(uint16_t type, uint64_t tracking_id);
  // Returns whether the start was in this chunk.
  bool Stop(uint16_t type, uint64_t tracking_id);
  // Numbers the chunk's event types, which several shapes can share.
  void MapShapesToTypes(const DecodedChunk& chunk);
  void ListTypes(ForeignStops& found);  // all types, if they fit

  // Open addressing with linear probing over the first mask_ + 1 slots: a power of two, at least a
  // quarter more than the chunk's events, so that a free slot always ends a probe.
  std::vector<Slot> slots_;
  size_t mask_ = 0;
  uint32_t generation_ = 0;     // counts chunks; saves clearing the slots
  std::vector<Latest> latest_;  // by type
  std::vector<uint16_t> type_of_shape_;
  std::vector<uint32_t> listed_;  // by type: its index in the result's event types
  std::vector<std::string_view> types_;
};

}  // namespace neurontrace
