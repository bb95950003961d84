// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/span_pairing.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "trace/limits.h"
#include "trace/tracking_hash.h"

namespace neurontrace {
namespace {

static_assert(limits::kChunkEventsMax < SpanPairing::kNone);
static_assert(limits::kChunkShapesMax < SpanPairing::kNone);
constexpr uint16_t kNotPaired = SpanPairing::kNone;  // a type whose events have no partner
constexpr uint16_t kStopBit = 0x8000;
static_assert(limits::kChunkShapesMax < kStopBit);

}  // namespace

// Several shapes can share an event type. A shape's entry says its type, and by a bit whether it is
// that of a stop.
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

void SpanPairing::Resize(size_t events) {
  const size_t wanted = std::bit_ceil(std::max<size_t>(2 * events, 64));
  if (wanted > slots_.size()) {
    slots_.assign(wanted, Slot{});
    generation_ = 0;
  }
  if (++generation_ == 0) {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    generation_ = 1;
  }
  partner_.assign(events, kNone);
  previous_open_.resize(events);
}

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
    size_t at = TrackingHash(tracking_id, type) & mask;
    while (slots_[at].generation == generation_ &&
           (slots_[at].tracking_id != tracking_id || slots_[at].type != type)) {
      at = (at + 1) & mask;
    }
    Slot& slot = slots_[at];
    if (slot.generation != generation_) slot = {tracking_id, generation_, type, kNone};
    const auto row = static_cast<uint16_t>(i);
    if ((entry & kStopBit) == 0) {
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
