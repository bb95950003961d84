// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/span_pairing.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "lib/trace/event.h"
#include "lib/trace/limits.h"
#include "lib/trace/tracking_hash.h"

namespace neurontrace {
namespace {

static_assert(limits::kChunkEventsMax < SpanPairing::kNone);
static_assert(limits::kChunkShapesMax < SpanPairing::kNone);
// Types share 16 bits with kStopBit, hence the second limit on shapes.
constexpr uint16_t kNotPaired = SpanPairing::kNone;  // a type whose events have no partner
constexpr uint16_t kStopBit = 0x8000;
static_assert(limits::kChunkShapesMax < kStopBit);

}  // namespace

// Several shapes can share an event type: starts and stops have different attributes. A shape's
// entry has the number of its type and, in one bit, whether it is a stop's.
void SpanPairing::MapShapesToTypes(const DecodedChunk& chunk) {
  absl::flat_hash_map<std::string_view, uint16_t> types;
  type_of_shape_.clear();
  for (const Shape& shape : chunk.shapes()) {
    if (!BeginsSpan(shape.phase) && !EndsSpan(shape.phase)) {
      type_of_shape_.push_back(kNotPaired);
      continue;
    }
    const auto type =
        types.try_emplace(shape.event_type, static_cast<uint16_t>(types.size())).first->second;
    type_of_shape_.push_back(EndsSpan(shape.phase) ? type | kStopBit : type);
  }
}

// Prepares the table for a chunk without clearing it: slots of other generations count as empty. At
// most half of the slots are used, so that probing stays short.
void SpanPairing::Resize(size_t events) {
  const size_t wanted = std::bit_ceil(std::max<size_t>(2 * events, 64));
  if (wanted > slots_.size()) {
    slots_.assign(wanted, Slot{});
    generation_ = 0;
  }
  // After 2^32 chunks the counter wraps, and a stale slot could look like one of this chunk.
  if (++generation_ == 0) {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    generation_ = 1;
  }
  partner_.assign(events, kNone);
  previous_open_.resize(events);
}

// Takes time in proportion to the events. Each type and tracking id has a stack of open starts,
// linked through previous_open_; a stop closes the top.
void SpanPairing::Pair(const DecodedChunk& chunk) {
  const size_t events = chunk.size();
  MapShapesToTypes(chunk);
  Resize(events);
  const auto shape_of = chunk.shape_of();
  const auto tracking_ids = chunk.tracking_id();
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < events; ++i) {
    const uint16_t entry = type_of_shape_[shape_of[i]];
    if (entry == kNotPaired) continue;
    const uint16_t type = entry & ~kStopBit;
    const uint64_t tracking_id = tracking_ids[i];
    // Linear probing. Ids of an unfriendly worker can cluster: TrackingHash mixes them.
    size_t at = TrackingHash(tracking_id, type) & mask;
    while (slots_[at].generation == generation_ &&
           (slots_[at].tracking_id != tracking_id || slots_[at].type != type)) {
      at = (at + 1) & mask;
    }
    Slot& slot = slots_[at];
    if (slot.generation != generation_) slot = {tracking_id, generation_, type, kNone};
    const auto row = static_cast<uint16_t>(i);
    if ((entry & kStopBit) == 0) {
      // Nested spans may share a type and a tracking id; the innermost closes first.
      previous_open_[row] = slot.open;
      slot.open = row;
    } else if (slot.open != kNone) {
      partner_[row] = slot.open;
      partner_[slot.open] = row;
      slot.open = previous_open_[slot.open];
    }
  }
}

}  // namespace neurontrace
