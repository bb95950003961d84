// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/shape_table.h"

#include <string_view>

namespace neurontrace {
namespace {

void Append(uint64_t number, std::string& key) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}
void Append(std::string_view text, std::string& key) {
  Append(text.size(), key);
  key += text;
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
  auto shared = Copy(shape);
  const SharedShape* result = shared.get();
  if (shapes_.size() < kShapesMax) {
    shapes_.emplace(key_, std::move(shared));
  } else {
    names.own_shapes.push_back(std::move(shared));
  }
  return result;
}

std::shared_ptr<const SharedShape> ShapeTable::Copy(const Shape& shape) {
  auto shared = std::make_shared<SharedShape>();
  shared->number = next_number_++;
  shared->shape = shape;
  size_t bytes = shape.event_type.size();
  for (const ShapeKey& key : shape.keys) bytes += key.name.size();
  shared->text.reserve(bytes);  // so that the views into it stay
  const auto copy = [&shared](std::string_view text) {
    const size_t at = shared->text.size();
    shared->text += text;
    return std::string_view(shared->text).substr(at, text.size());
  };
  shared->shape.event_type = copy(shape.event_type);
  for (ShapeKey& key : shared->shape.keys) key.name = copy(key.name);
  return shared;
}

}  // namespace neurontrace
