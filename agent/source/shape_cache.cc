// SPDX-License-Identifier: Apache-2.0
#include "agent/source/shape_cache.h"

#include <cstring>

// How it works: a direct-mapped table of recent shapes by event type answers nearly every event. A
// hash table of signatures answers the rest and owns the shapes.
namespace neurontrace {
namespace {

// Returns true if the query has this shape. Numbers are compared before texts, which cost more.
bool Matches(const CachedShape& cached, const ShapeCache::Query& query) {
  const Shape& shape = cached.shape;
  if (shape.present != query.present || shape.quoted != query.quoted ||
      shape.phase != query.phase || shape.keys.size() != query.keys.size() ||
      shape.event_type != query.event_type) {
    return false;
  }
  for (size_t i = 0; i < query.keys.size(); ++i) {
    const ShapeKey& known = shape.keys[i];
    const ShapeKey& key = query.keys[i];
    if (known.type != key.type || known.scope != key.scope || known.name != key.name) {
      return false;
    }
  }
  return true;
}

// Appends the value's bytes; the signature is only compared within one process.
template <typename T>
void AppendRaw(T value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// With its length first, so that no two different queries have the same signature.
void AppendText(std::string_view text, std::string& out) {
  AppendRaw(static_cast<uint32_t>(text.size()), out);
  out += text;
}

// Returns a shape with copies of the query's texts, as the query's buffers are reused.
std::unique_ptr<CachedShape> Copy(const ShapeCache::Query& query) {
  auto cached = std::make_unique<CachedShape>();
  size_t bytes = query.event_type.size();
  for (const ShapeKey& key : query.keys) bytes += key.name.size();
  cached->names.reserve(bytes);  // never grows again: views into it stay valid
  const auto keep = [&names = cached->names](std::string_view text) {
    const size_t at = names.size();
    names += text;
    return std::string_view(names).substr(at);
  };
  Shape& shape = cached->shape;
  shape.event_type = keep(query.event_type);
  shape.phase = query.phase;
  shape.present = query.present;
  shape.quoted = query.quoted;
  for (const ShapeKey& key : query.keys) {
    shape.keys.push_back({keep(key.name), key.type, key.scope});
  }
  return cached;
}

}  // namespace

ShapeCache::ShapeCache() = default;

size_t ShapeCache::TypeSlot(std::string_view event_type, Phase phase) {
  // Length and both ends of the name distinguish the runtime's types; a collision costs only a
  // miss.
  uint64_t head = 0;
  uint64_t tail = 0;
  if (event_type.size() >= 8) {
    std::memcpy(&head, event_type.data(), 8);
    std::memcpy(&tail, event_type.data() + event_type.size() - 8, 8);
  } else if (!event_type.empty()) {
    std::memcpy(&head, event_type.data(), event_type.size());
  }
  const uint64_t mixed =
      (head ^ (tail * 0x9e3779b97f4a7c15) ^ event_type.size() << 8 ^ static_cast<uint64_t>(phase)) *
      0xff51afd7ed558ccd;
  return mixed >> 40 & (kTypeSlots - 1);
}

const CachedShape& ShapeCache::Find(const Query& query) {
  Recent& recent = recent_[TypeSlot(query.event_type, query.phase)];
  for (size_t i = 0; i < kRecentMax && recent[i] != nullptr; ++i) {
    if (!Matches(*recent[i], query)) continue;
    // One step forward rather than to the front: two shapes that alternate stay next to each other.
    if (i > 0) std::swap(recent[i], recent[i - 1]);
    return i > 0 ? *recent[i - 1] : *recent[0];
  }
  const CachedShape& found = FindOrAdd(query);
  for (size_t i = kRecentMax - 1; i > 0; --i) recent[i] = recent[i - 1];
  recent[0] = &found;
  return found;
}

const CachedShape& ShapeCache::FindOrAdd(const Query& query) {
  signature_.clear();
  AppendRaw(query.phase, signature_);
  AppendRaw(query.present, signature_);
  AppendRaw(query.quoted, signature_);
  AppendText(query.event_type, signature_);
  for (const ShapeKey& key : query.keys) {
    AppendRaw(key.type, signature_);
    AppendRaw(key.scope, signature_);
    AppendText(key.name, signature_);
  }
  const auto known = by_signature_.find(signature_);
  if (known != by_signature_.end()) return *known->second;
  // Emptied as a whole, since users index by number and cannot lose single shapes.
  if (by_signature_.size() >= kShapesMax || bytes_ + 2 * signature_.size() > kBytesMax) {
    by_signature_.clear();
    recent_.fill({});
    bytes_ = 0;
    ++generation_;
  }
  std::unique_ptr<CachedShape> added = Copy(query);
  added->number = static_cast<uint32_t>(by_signature_.size());
  added->generation = generation_;
  // The names are stored twice, in the key and in the shape.
  bytes_ += 2 * signature_.size();
  return *by_signature_.emplace(signature_, std::move(added)).first->second;
}

}  // namespace neurontrace
