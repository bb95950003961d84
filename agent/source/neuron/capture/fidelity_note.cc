// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/fidelity_note.h"

#include <array>
#include <cmath>

#include "lib/trace/fidelity.h"

namespace neurontrace {
namespace {

// The shape of the note, with the keys of docs/formats/chunk.md; AppendFidelity gives the values in
// this order.
CachedShape MakeShape() {
  CachedShape cached;
  cached.shape = {.event_type = kFidelityEventType,
                  .phase = Phase::kInstant,
                  .present = FieldBit(Field::kNcIdx) | FieldBit(Field::kTimestamp),
                  .keys = {{kFidelityLevelKey, ValueType::kUint},
                           {kFidelityReasonKey, ValueType::kString},
                           {kFidelityLeavesOutKey, ValueType::kString},
                           {kFidelityCorePpmKey, ValueType::kUint},
                           {kFidelityBytesKey, ValueType::kUint},
                           {kFidelityUnrecordedKey, ValueType::kUint}}};
  cached.generation = UINT32_MAX;  // of no ShapeCache
  return cached;
}

// Returns the nearest whole number; 0 for a negative value.
uint64_t Rounded(double value) {
  return value > 0 ? static_cast<uint64_t>(std::llround(value)) : 0;
}

}  // namespace

void AppendFidelity(uint64_t position, const FidelityNote& note, StreamWriter& writer) {
  static const CachedShape kShape = MakeShape();
  const std::array<AttributeValue, 6> values = {
      {{.bits = note.level, .text = {}},
       {.bits = 0, .text = note.reason},
       {.bits = 0, .text = LeftOutOfFidelity(note.level)},
       {.bits = Rounded(note.cost.core_ppm), .text = {}},
       {.bits = Rounded(note.cost.bytes_per_second), .text = {}},
       {.bits = note.unrecorded_ns, .text = {}}}};
  writer.Append(position, kShape, {.timestamp_ns = note.at_ns}, values);
}

}  // namespace neurontrace
