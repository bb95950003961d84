// SPDX-License-Identifier: Apache-2.0
#include "cli/time_window.h"

#include "cli/text.h"
#include "lib/base/status.h"

namespace neurontrace::cli {
namespace {

// What an edge of the window is relative to. kOpen: the window has no such edge, whose `ns` is 0.
enum class Scale { kOpen, kEpoch, kFirstEvent, kBeforeNow };
struct WindowEdge {
  uint64_t ns = 0;
  Scale scale = Scale::kOpen;
};

// "now" is 0 before now.
absl::StatusOr<WindowEdge> ParseTime(const std::string& text) {
  if (text.empty()) return WindowEdge();
  if (text == "now") return WindowEdge{0, Scale::kBeforeNow};
  if (text.starts_with('-')) {
    ASSIGN_OR_RETURN(const uint64_t before_ns, ParseDuration(text.substr(1)));
    return WindowEdge{before_ns, Scale::kBeforeNow};
  }
  // Fewer digits would mean the first 12 days of 1970: more likely a duration without its unit.
  if (text.size() >= 16 && text.find_first_not_of("0123456789") == std::string::npos) {
    if (text.size() > 19) return InvalidArgument("{} is too large for a time in ns", text);
    return WindowEdge{std::stoull(text), Scale::kEpoch};
  }
  ASSIGN_OR_RETURN(const uint64_t offset_ns, ParseDuration(text));
  return WindowEdge{offset_ns, offset_ns == 0 ? Scale::kOpen : Scale::kFirstEvent};
}

}  // namespace

absl::StatusOr<TimeWindow> ParseTimeWindow(const std::string& from_text,
                                           const std::string& to_text) {
  ASSIGN_OR_RETURN(const WindowEdge from, ParseTime(from_text));
  ASSIGN_OR_RETURN(WindowEdge to, ParseTime(to_text));
  if (from.scale == Scale::kBeforeNow && from.ns == 0) {
    return InvalidArgument("--from {}: the time is in the future; use a form such as --from -5m",
                           from_text);
  }
  if (!to_text.empty() && to.scale == Scale::kOpen) {
    return InvalidArgument("--to {}: no event is earlier; use a later time, or omit it", to_text);
  }
  // All existing events are before now, so this edge has no effect.
  if (to.scale == Scale::kBeforeNow && to.ns == 0 && from.scale != Scale::kBeforeNow) to = {};
  // A request has one flag for both edges, so either both or none are relative to now.
  const bool is_mixed = (from.scale == Scale::kBeforeNow) != (to.scale == Scale::kBeforeNow);
  if (is_mixed && from.scale != Scale::kOpen && to.scale != Scale::kOpen) {
    return InvalidArgument(
        "--from {} and --to {}: one is relative to now and the other is not; use the same form for "
        "both",
        from_text, to_text);
  }
  const bool is_before_now = from.scale == Scale::kBeforeNow || to.scale == Scale::kBeforeNow;
  const bool is_open = from.scale == Scale::kOpen || to.scale == Scale::kOpen;
  // Durations before now decrease with time.
  const bool is_empty = is_before_now ? to.ns >= from.ns : to.ns <= from.ns;
  if (!is_open && from.scale == to.scale && is_empty) {
    return InvalidArgument("--to must be later than --from");
  }
  if (is_before_now && from.scale == Scale::kOpen) {
    return InvalidArgument("--to {} needs a --from that is also relative to now", to_text);
  }
  return TimeWindow{.start_ns = from.ns,
                    .end_ns = to.ns,
                    .start_is_relative = from.scale == Scale::kFirstEvent,
                    .end_is_relative = to.scale == Scale::kFirstEvent,
                    .is_before_now = is_before_now};
}

}  // namespace neurontrace::cli
