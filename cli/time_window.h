// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace neurontrace::cli {

// A window of time as requests have it. A plain value.
struct TimeWindow {
  uint64_t start_ns = 0;           // 0: open
  uint64_t end_ns = 0;             // 0: open; with is_before_now: now
  bool start_is_relative = false;  // counts from the capture's first event
  bool end_is_relative = false;
  bool is_before_now = false;  // both count back from now
};

// Parses --from and --to, or the halves of --window: an epoch in ns (16 digits or more), a duration
// since the capture's first event, a duration before now with a minus, or "now". Empty: open. Fails
// with INVALID_ARGUMENT for edges that cannot be combined or that enclose nothing. Pure.
absl::StatusOr<TimeWindow> ParseTimeWindow(const std::string& from, const std::string& to);

}  // namespace neurontrace::cli
