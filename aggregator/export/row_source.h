// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace neurontrace {

// The vendor's `trace_event_source`, which is also the last part of a row's name.
enum class RowSource : uint8_t { kRuntime, kHardware, kFramework, kAnnotation };
std::string_view ToString(RowSource source);

// Mark streams with times of their own: the suffix of their processes' names, and the argument of
// their events that has the time recorded in their file.
inline constexpr std::string_view kOwnTimeSuffix = " (own time, not aligned)";
inline constexpr std::string_view kOwnTimeKey = "own_time_ns";

// Returns where the events of a runtime type are drawn. The vendor's viewer draws the
// synchronisation point with the runtime and the model switch of a core with the hardware, whatever
// its documentation counts them as. Pure, as all functions here.
RowSource RowSourceOf(std::string_view event_type);
// Does the same for a file of hardware events alone, which has no rows of the runtime.
inline RowSource RowSourceOf(std::string_view event_type, bool is_hardware_only) {
  return is_hardware_only ? RowSource::kHardware : RowSourceOf(event_type);
}

// Returns the category of a framework's event, or an empty text if its file has none: then the
// letter of its phase is its type.
std::string_view FrameworkCategory(std::string_view event_type);

}  // namespace neurontrace
