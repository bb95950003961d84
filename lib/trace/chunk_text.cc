// SPDX-License-Identifier: Apache-2.0
// An upper bound of the expanded text is the number of events times the longest names and texts
// that one event can have. It needs a pass over the shapes and strings only, and usual chunks are
// below the limit by it. A chunk that is not gets an exact count, which reads the text columns of
// all events.
#include "lib/trace/chunk_text.h"

#include <algorithm>
#include <vector>

#include "lib/base/status.h"
#include "lib/trace/chunk_format.h"
#include "lib/trace/chunk_limits.h"

namespace neurontrace {
namespace {

using chunk_format::IsText;

// At most 8,192 events with 64 texts and names of 64 KiB each: no sum of these overflows 64 bits.
struct Names {
  std::vector<size_t> bytes;  // per shape
  size_t total = 0;
  size_t most = 0;        // of one shape
  size_t texts_most = 0;  // keys of one shape whose values are text
};

// Returns the sizes of all shapes' names, with their sum and maximum.
Names NamesOf(const DecodedChunk& chunk) {
  Names names;
  names.bytes.reserve(chunk.shapes().size());
  for (const Shape& shape : chunk.shapes()) {
    const size_t bytes = NameBytes(shape);
    const size_t texts = std::count_if(shape.keys.begin(), shape.keys.end(),
                                       [](const ShapeKey& key) { return IsText(key.type); });
    names.bytes.push_back(bytes);
    names.total += bytes;
    names.most = std::max(names.most, bytes);
    names.texts_most = std::max(names.texts_most, texts);
  }
  return names;
}

// The exact number, which needs a pass over all events.
size_t TextBytes(const DecodedChunk& chunk, const Names& names) {
  size_t bytes = 0;
  for (const uint16_t shape : chunk.shape_of()) bytes += names.bytes[shape];
  const auto strings = chunk.strings();
  for (uint32_t s = 0; s < chunk.shapes().size(); ++s) {
    const auto& keys = chunk.shapes()[s].keys;
    for (uint32_t k = 0; k < keys.size(); ++k) {
      if (!IsText(keys[k].type)) continue;
      for (const uint64_t text : chunk.column(s, k)) bytes += strings[text].size();
    }
  }
  return bytes;
}

}  // namespace

size_t NameBytes(const Shape& shape) {
  size_t bytes = shape.event_type.size();
  for (const ShapeKey& key : shape.keys) bytes += key.name.size();
  return bytes;
}

absl::Status CheckChunkText(const DecodedChunk& chunk) {
  const Names names = NamesOf(chunk);
  if (names.total > limits::kChunkNameBytesMax) {
    return InvalidArgument("columns: the names of all shapes have {} bytes; the limit is {}",
                           names.total, limits::kChunkNameBytesMax);
  }
  // The strings are limited by themselves too: a reader holds all of them, used or not.
  size_t strings = 0, longest = 0;
  for (const std::string_view text : chunk.strings()) {
    strings += text.size();
    longest = std::max(longest, text.size());
  }
  if (strings > limits::kChunkStringBytesMax) {
    return InvalidArgument("columns: the strings have {} bytes; the limit is {}", strings,
                           limits::kChunkStringBytesMax);
  }
  // An upper bound that needs no pass over the events and suffices for usual chunks.
  const size_t bound = chunk.size() * (names.most + names.texts_most * longest);
  if (bound <= limits::kChunkTextBytesMax) return absl::OkStatus();
  if (const size_t bytes = TextBytes(chunk, names); bytes > limits::kChunkTextBytesMax) {
    return InvalidArgument(
        "columns: the names and texts of all events have {} bytes; the limit is {}", bytes,
        limits::kChunkTextBytesMax);
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
