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

}  // namespace neurontrace
