// SPDX-License-Identifier: Apache-2.0
// What the writer and the reader of chunk columns share. docs/formats/chunk.md has the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/trace/event.h"
#include "lib/trace/limits.h"

namespace neurontrace::chunk_format {

inline constexpr uint8_t kVersion = 1;

// The columns of the standard fields, in the order in which they are written after the timestamps.
inline constexpr std::array<Field, 6> kFieldColumns = {Field::kId,         Field::kNcLocalId,
                                                       Field::kTrackingId, Field::kThreadId,
                                                       Field::kNrtaSeqId,  Field::kWorkerGid};

// A key's byte: value type in the low four bits, scope in the high four.
constexpr uint8_t PackKey(ValueType type, KeyScope scope) {
  return static_cast<uint8_t>(static_cast<unsigned>(type) | static_cast<unsigned>(scope) << 4);
}

// Up to this many shapes an event names its shape with one byte, beyond with two.
inline constexpr size_t kByteShapesMax = 256;

constexpr bool IsText(ValueType type) {
  return type == ValueType::kString || type == ValueType::kJson;
}
constexpr bool IsFinite(uint64_t double_bits) { return (double_bits >> 52 & 0x7ff) != 0x7ff; }

// What a builder lets its columns grow to: even if nothing could be compressed, the frame stays
// within limits::kChunkBytesMax (zstd adds at most 1/256 and a few bytes).
inline constexpr size_t kBuilderBytesMax = limits::kChunkBytesMax - limits::kChunkBytesMax / 64;
// What one event, or one shape, may take of that: so that both always fit into an empty chunk.
inline constexpr size_t kBuilderItemBytesMax = kBuilderBytesMax / 2 - 4096;

static_assert(limits::kStringBytesMax < kBuilderItemBytesMax);
static_assert(kBuilderBytesMax <= limits::kChunkColumnsBytesMax);

}  // namespace neurontrace::chunk_format
