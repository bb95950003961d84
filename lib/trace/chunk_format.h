// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/trace/event.h"
#include "lib/trace/limits.h"

// Constants and functions that the writer and the reader of chunk columns share.
// docs/formats/chunk.md describes the bytes. A change that old readers cannot read needs a new
// kVersion.
namespace neurontrace::chunk_format {

inline constexpr uint8_t kVersion = 1;

// The columns of the standard fields, in the order in which they follow the timestamps.
inline constexpr std::array<Field, 6> kFieldColumns = {Field::kId,         Field::kNcLocalId,
                                                       Field::kTrackingId, Field::kThreadId,
                                                       Field::kNrtaSeqId,  Field::kWorkerGid};

// Returns a key's byte: value type in the low four bits, scope in the high four.
constexpr uint8_t PackKey(ValueType type, KeyScope scope) {
  return static_cast<uint8_t>(static_cast<unsigned>(type) | static_cast<unsigned>(scope) << 4);
}

// Up to this many shapes an event refers to its shape by one byte, beyond by two.
inline constexpr size_t kByteShapesMax = 256;

constexpr bool IsText(ValueType type) {
  return type == ValueType::kString || type == ValueType::kJson;
}
// Returns whether the bits of a double are neither infinite nor NaN. JSON and most readers cannot
// represent those.
constexpr bool IsFinite(uint64_t double_bits) { return (double_bits >> 52 & 0x7ff) != 0x7ff; }

// The most that a builder lets its columns grow to: the frame stays within limits::kChunkBytesMax
// even if nothing compresses (zstd adds at most 1/256 and a few bytes; see ZSTD_COMPRESSBOUND).
inline constexpr size_t kBuilderBytesMax = limits::kChunkBytesMax - limits::kChunkBytesMax / 64;
// The most that one event, or one shape, may take of that, so that both together always fit into an
// empty chunk.
inline constexpr size_t kBuilderItemBytesMax = kBuilderBytesMax / 2 - 4096;

static_assert(limits::kStringBytesMax < kBuilderItemBytesMax);
static_assert(kBuilderBytesMax <= limits::kChunkColumnsBytesMax);

}  // namespace neurontrace::chunk_format
