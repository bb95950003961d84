// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/trace/event_chunk.h"

namespace neurontrace {

// The stop events of a chunk whose start is not in the same chunk, so that a reader can find the
// end of a span that crosses chunks without decoding ahead. In the order of the chunk; at most one
// entry an event. With them the chunk's event types, so that a reader of others passes it over. A
// plain value.
struct ForeignStops {
  // Of all names together. A chunk whose event types need more lists those of its stops alone.
  static constexpr size_t kListedTypesBytesMax = 1'024;

  struct Entry {
    uint32_t type = 0;  // index into event_types
    uint64_t tracking_id = 0;
    uint64_t timestamp_ns = 0;  // raw, not decreasing from entry to entry
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::vector<std::string> event_types;
  std::vector<Entry> entries;
  // `event_types` are all of the chunk, in the order of its shapes; otherwise those of the entries.
  bool has_all_types = false;

  friend bool operator==(const ForeignStops&, const ForeignStops&) = default;
};

// Finds them: a stop belongs to the chunk when a start of the same event type and tracking id
// precedes it and no other stop has taken it. Keeps its memory from chunk to chunk; one thread
// at a time.
class ForeignStopFinder {
 public:
  ForeignStopFinder();
  ~ForeignStopFinder();
  ForeignStopFinder(const ForeignStopFinder&) = delete;
  ForeignStopFinder& operator=(const ForeignStopFinder&) = delete;

  ForeignStops Find(const DecodedChunk& chunk);

 private:
  struct Slot {
    uint64_t tracking_id = 0;
    uint16_t type = 0;
    uint16_t open = 0;        // starts not yet stopped
    uint32_t generation = 0;  // of another chunk: the slot is free
  };
  // Starts of the id that a type began last: most spans end before the next one of their type
  // begins, and never get into the table.
  struct Latest {
    uint64_t tracking_id = 0;
    uint32_t open = 0;
  };
  Slot& Lookup(uint16_t type, uint64_t tracking_id);
  void Start(uint16_t type, uint64_t tracking_id);
  bool Stop(uint16_t type, uint64_t tracking_id);  // true: its start was in this chunk
  void MapShapesToTypes(const DecodedChunk& chunk);
  void ListTypes(ForeignStops& found);  // all, where they are few enough

  // Open addressing over the first mask_ + 1 slots: a power of two, a quarter more than the chunk's
  // events at least.
  std::vector<Slot> slots_;
  size_t mask_ = 0;
  uint32_t generation_ = 0;
  std::vector<Latest> latest_;  // by type
  std::vector<uint16_t> type_of_shape_;
  std::vector<uint32_t> listed_;  // by type: where it is in the stops' event types
  std::vector<std::string_view> types_;
};

}  // namespace neurontrace
