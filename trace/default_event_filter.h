// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "trace/capture_spec.h"
#include "trace/event_filter.h"

namespace neurontrace {

// What is put into a capture that says nothing of event types.
inline std::vector<std::string> DefaultEventFilter() {
  return {kDefaultEventTypeItems.begin(), kDefaultEventTypeItems.end()};
}

// Whether this is what the capture's filter came from, which people are to be told.
inline bool HasDefaultEventFilter(const CaptureSpec& spec) {
  return !spec.all_events && spec.event_types == DefaultEventFilter();
}

}  // namespace neurontrace
