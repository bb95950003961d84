// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/event_chunk.h"

namespace neurontrace {

// Pairs starts with stops inside one chunk: a stop closes the latest start of the same event type
// and tracking id that stands before it and is still open. Keeps its memory from chunk to chunk;
// one thread at a time.
class SpanPairing {
 public:
  static constexpr uint16_t kNone = 0xffff;

  // Afterwards partner()[i] is the event that event i is paired with, kNone for every other event.
  void Pair(const DecodedChunk& chunk);
  std::span<const uint16_t> partner() const { return partner_; }

 private:
  struct Slot {
    uint64_t tracking_id = 0;
    uint32_t generation = 0;  // of another chunk: the slot is free
    uint16_t type = 0;
    uint16_t open = kNone;  // the latest open start
  };
  void MapShapesToTypes(const DecodedChunk& chunk);
  void Resize(size_t events);

  std::vector<Slot> slots_;  // open addressing; a power of two, at least twice the events
  uint32_t generation_ = 0;
  std::vector<uint16_t> type_of_shape_;
  std::vector<uint16_t> partner_;
  std::vector<uint16_t> previous_open_;  // of a start: the start that was open under the same key
};

}  // namespace neurontrace
