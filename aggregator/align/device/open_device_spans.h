// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "aggregator/align/device/device_event.h"
#include "lib/trace/clock_limits.h"

namespace neurontrace {

// The spans of one ring that have started and not stopped, each with what its stop needs. A start
// and its stop share their type and tracking id. Beyond limits::kDeviceSpansOpenMax the span that
// started first is forgotten, because it has most probably lost its stop. One thread at a time.
template <typename Span>
class OpenDeviceSpans {
 public:
  // A second start with the same type and id replaces the first one, whose stop is lost.
  void Put(const DeviceEvent& start, Span span) {
    Take(start);
    const Key key{start.type, start.tracking_id};
    spans_.emplace(key, Open{std::move(span), order_.insert(order_.end(), key)});
    if (spans_.size() <= limits::kDeviceSpansOpenMax) return;
    spans_.erase(order_.front());
    order_.pop_front();
  }

  // Removes and returns the span that this event stops; nullopt if its start was lost or forgotten.
  std::optional<Span> Take(const DeviceEvent& stop) {
    const auto at = spans_.find(Key{stop.type, stop.tracking_id});
    if (at == spans_.end()) return std::nullopt;
    Open open = std::move(at->second);
    spans_.erase(at);
    order_.erase(open.place);
    return std::move(open.span);
  }

 private:
  using Key = std::pair<DeviceEventType, uint64_t>;
  struct Open {
    Span span;
    std::list<Key>::iterator place;  // in order_
  };

  absl::flat_hash_map<Key, Open> spans_;
  std::list<Key> order_;  // the keys of spans_, oldest first
};

}  // namespace neurontrace
