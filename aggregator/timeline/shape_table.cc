// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/shape_table.h"

#include <cassert>
#include <string_view>
#include <utility>

#include "lib/trace/chunk_text.h"

namespace neurontrace {
namespace {

// Keys are compared within this process only, so that the byte order of the machine is good enough.
void Append(uint64_t number, std::string& key) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}
// The length first, so that different lists of texts never give the same key.
void Append(std::string_view text, std::string& key) {
  Append(text.size(), key);
  key += text;
}

// Returns roughly the memory of the shared form.
size_t BytesOf(const Shape& shape) {
  return sizeof(SharedShape) + shape.keys.size() * sizeof(ShapeKey) + NameBytes(shape);
}

}  // namespace

const SharedShape* ShapeTable::Share(const Shape& shape, ChunkNames& names) {
  key_.clear();
  Append(shape.event_type, key_);
  Append(uint64_t{static_cast<uint8_t>(shape.phase)} << 32 | shape.present, key_);
  for (const ShapeKey& key : shape.keys) {
    Append(key.name, key_);
    key_ += static_cast<char>(key.type);
    key_ += static_cast<char>(key.scope);
  }
  const auto known = shapes_.find(key_);
  if (known != shapes_.end()) return known->second.get();
  const size_t bytes = BytesOf(shape);
  // A hostile capture can have a new shape in each chunk: beyond the limits memory is freed with
  // the chunk.
  const bool is_kept = shapes_.size() < kShapesMax && bytes_ + bytes + key_.size() <= kBytesMax;
  auto shared = Copy(shape, is_kept ? shapes_.size() : next_own_number_++);
  const SharedShape* result = shared.get();
  if (is_kept) {
    bytes_ += bytes + key_.size();
    assert(bytes_ <= kBytesMax);
    shapes_.emplace(key_, std::move(shared));
  } else {
    names.bytes += bytes;
    names.own_shapes.push_back(std::move(shared));
  }
  return result;
}

std::shared_ptr<const SharedShape> ShapeTable::Copy(const Shape& shape, uint64_t number) {
  auto shared = std::make_shared<SharedShape>();
  shared->number = number;
  shared->shape = shape;
  // Reserved in full, because the views below point into it and a reallocation would invalidate
  // them.
  shared->text.reserve(NameBytes(shape));
  const auto copy = [&shared](std::string_view text) {
    const size_t at = shared->text.size();
    shared->text += text;
    return std::string_view(shared->text).substr(at, text.size());
  };
  shared->shape.event_type = copy(shape.event_type);
  for (ShapeKey& key : shared->shape.keys) key.name = copy(key.name);
  assert(shared->text.size() == NameBytes(shape));
  return shared;
}

}  // namespace neurontrace
