// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/flow_links.h"

#include "aggregator/timeline/framework_names.h"

namespace neurontrace {

FlowLinks::Key FlowLinks::KeyOf(const TimelineRecord& record) {
  Key key{record.stream, HashEventType(record.start().event_type), 0};
  const ShapeKey* about = nullptr;
  const uint64_t* value = FindAttribute(record, KeyScope::kTop, "flow_id", &about);
  if (value == nullptr) return key;
  const bool is_text = about->type == ValueType::kString || about->type == ValueType::kJson;
  key.id = is_text ? HashEventType(record.text(*value)) : *value;
  return key;
}

FlowLinks::Open& FlowLinks::Insert(const Key& key) {
  while (open_.size() >= kOpenMax && !in_order_.empty()) {
    const auto [oldest, id] = in_order_.front();
    in_order_.pop_front();
    const auto it = open_.find(oldest);
    if (it != open_.end() && it->second.id == id) open_.erase(it);
  }
  // Closed ones are swept when they are most of the queue.
  if (in_order_.size() > 2 * kOpenMax) {
    std::erase_if(in_order_, [this](const auto& entry) {
      const auto it = open_.find(entry.first);
      return it == open_.end() || it->second.id != entry.second;
    });
  }
  const uint64_t id = next_id_++;
  in_order_.emplace_back(key, id);
  return open_[key] = Open{.id = id};
}

uint64_t FlowLinks::Link(const TimelineRecord& record) {
  ++points_;
  const Key key = KeyOf(record);
  const auto it = open_.find(key);
  if (record.kind == RecordKind::kFlowStart) {
    // An id that is used again starts a new arrow, unless its ends came first.
    const bool is_awaited = it != open_.end() && !it->second.has_start;
    Open& open = is_awaited ? it->second : Insert(key);
    orphan_ends_ -= open.ends;
    open.ends = 0;
    open.has_start = true;
    return open.id;
  }
  Open& open = it != open_.end() ? it->second : Insert(key);
  if (record.kind == RecordKind::kFlowEnd && !open.has_start) {
    ++open.ends;
    ++orphan_ends_;
  }
  return open.id;
}

}  // namespace neurontrace
