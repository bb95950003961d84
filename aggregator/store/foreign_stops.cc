// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/foreign_stops.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "lib/trace/event.h"
#include "lib/trace/limits.h"
#include "lib/trace/tracking_hash.h"

namespace neurontrace {
namespace {

// An event type that the result does not name so far.
constexpr uint32_t kNotListed = UINT32_MAX;

// Returns the size of the table for this many events: a power of two with a quarter of free slots.
constexpr size_t SlotsFor(size_t events) { return std::bit_ceil(events + events / 4 + 1); }
static_assert(limits::kChunkEventsMax <= UINT16_MAX && limits::kChunkShapesMax <= UINT16_MAX,
              "a slot counts both in 16 bits");

}  // namespace

ForeignStopFinder::ForeignStopFinder() : slots_(SlotsFor(limits::kChunkEventsMax)) {}
ForeignStopFinder::~ForeignStopFinder() = default;

// Returns the slot of this pair, or a free one that it then takes. A slot of an earlier chunk
// counts as free, so the table needs no clearing.
ForeignStopFinder::Slot& ForeignStopFinder::Lookup(uint16_t type, uint64_t tracking_id) {
  for (size_t at = TrackingHash(tracking_id, type) & mask_;; at = (at + 1) & mask_) {
    Slot& slot = slots_[at];
    if (slot.generation != generation_) {
      slot = {.tracking_id = tracking_id, .type = type, .open = 0, .generation = generation_};
      return slot;
    }
    if (slot.tracking_id == tracking_id && slot.type == type) return slot;
  }
}

void ForeignStopFinder::Start(uint16_t type, uint64_t tracking_id) {
  Latest& latest = latest_[type];
  // The earlier id moves to the table, where its stop will look for it.
  if (latest.open > 0 && latest.tracking_id != tracking_id) {
    Slot& slot = Lookup(type, latest.tracking_id);
    slot.open = static_cast<uint16_t>(slot.open + latest.open);
    latest.open = 0;
  }
  latest.tracking_id = tracking_id;
  ++latest.open;
}

// A stop matches any open start of its pair; which of several does not matter, because only their
// number counts.
bool ForeignStopFinder::Stop(uint16_t type, uint64_t tracking_id) {
  Latest& latest = latest_[type];
  if (latest.open > 0 && latest.tracking_id == tracking_id) {
    --latest.open;
    return true;
  }
  Slot& slot = Lookup(type, tracking_id);
  if (slot.open == 0) return false;
  --slot.open;
  return true;
}

// Several shapes can have the same event type.
void ForeignStopFinder::MapShapesToTypes(const DecodedChunk& chunk) {
  absl::flat_hash_map<std::string_view, uint16_t> numbers;
  types_.clear();
  type_of_shape_.clear();
  for (const Shape& shape : chunk.shapes()) {
    const auto [it, is_new] =
        numbers.try_emplace(shape.event_type, static_cast<uint16_t>(types_.size()));
    if (is_new) types_.push_back(shape.event_type);
    type_of_shape_.push_back(it->second);
  }
}

// Without all types a reader cannot skip the chunk by its types, but the entry stays small.
void ForeignStopFinder::ListTypes(ForeignStops& found) {
  listed_.assign(types_.size(), kNotListed);
  size_t bytes = 0;
  for (const std::string_view type : types_) bytes += type.size();
  if (bytes > ForeignStops::kListedTypesBytesMax) return;
  found.has_all_types = true;
  found.event_types.assign(types_.begin(), types_.end());
  std::iota(listed_.begin(), listed_.end(), 0);
}

// One pass over the events with a hash table of open starts, so linear in their number.
ForeignStops ForeignStopFinder::Find(const DecodedChunk& chunk) {
  ForeignStops found;
  // After 2^32 chunks the counter wraps, and old slots would look like those of this chunk.
  if (++generation_ == 0) {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    generation_ = 1;
  }
  const size_t events = chunk.size();
  mask_ = SlotsFor(events) - 1;
  MapShapesToTypes(chunk);
  latest_.assign(types_.size(), Latest{});
  ListTypes(found);
  const auto shapes = chunk.shapes();
  const auto shape_of = chunk.shape_of();
  const auto tracking_ids = chunk.tracking_id();
  const auto timestamps = chunk.timestamp_ns();
  for (size_t i = 0; i < events; ++i) {
    const Phase phase = shapes[shape_of[i]].phase;
    if (!BeginsSpan(phase) && !EndsSpan(phase)) continue;
    const uint16_t type = type_of_shape_[shape_of[i]];
    if (BeginsSpan(phase)) {
      Start(type, tracking_ids[i]);
    } else if (!Stop(type, tracking_ids[i])) {
      if (listed_[type] == kNotListed) {
        listed_[type] = static_cast<uint32_t>(found.event_types.size());
        found.event_types.emplace_back(types_[type]);
      }
      found.entries.push_back({listed_[type], tracking_ids[i], timestamps[i]});
    }
  }
  return found;
}

}  // namespace neurontrace
