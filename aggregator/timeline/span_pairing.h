// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/trace/decoded_chunk.h"

namespace neurontrace {

// Pairs starts with stops inside one chunk: a stop closes the latest preceding start of the same
// event type and tracking id that is still open. Keeps its memory from chunk to chunk. Used by one
// thread at a time.
class SpanPairing {
 public:
  static constexpr uint16_t kNone = 0xffff;

  // Afterwards partner()[i] is the event that event i is paired with, or kNone.
  void Pair(const DecodedChunk& chunk);
  std::span<const uint16_t> partner() const { return partner_; }

 private:
  struct Slot {
    uint64_t tracking_id = 0;
    // A slot with the generation of another chunk is free, so that none has to be cleared.
    uint32_t generation = 0;
    uint16_t type = 0;
    // The latest open start.
    uint16_t open = kNone;
  };
  void MapShapesToTypes(const DecodedChunk& chunk);
  void Resize(size_t events);

  // Open addressing: a power of two, at least twice the events, so that probing always ends.
  std::vector<Slot> slots_;
  uint32_t generation_ = 0;
  std::vector<uint16_t> type_of_shape_;
  std::vector<uint16_t> partner_;
  // Of a start: the start that was open under the same key before, which makes a stack.
  std::vector<uint16_t> previous_open_;
};

}  // namespace neurontrace
