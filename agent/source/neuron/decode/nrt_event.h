// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "agent/source/shape_cache.h"
#include "lib/trace/event.h"
#include "lib/trace/limits.h"

namespace neurontrace {

// One decoded event; everything it points to is valid only during the call that passes it.
struct NrtEvent {
  // limits::kNoNcIdx for an event of no particular core.
  uint32_t nc_idx = limits::kNoNcIdx;
  const CachedShape* shape = nullptr;
  EventFields fields;
  // The values of the shape's keys, in the same order.
  std::span<const AttributeValue> values;
};

}  // namespace neurontrace
