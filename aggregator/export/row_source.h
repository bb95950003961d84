// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace neurontrace {

// The vendor's `trace_event_source`: also the last part of a row's name.
enum class RowSource : uint8_t { kRuntime, kHardware, kFramework };
std::string_view ToString(RowSource source);

// What is said of streams with times of their own: the end of their processes' names, and the
// argument or member of their events with the time that their file has.
inline constexpr std::string_view kOwnTimeSuffix = " (own time, not aligned)";
inline constexpr std::string_view kOwnTimeKey = "own_time_ns";

// Where the events of a runtime type are drawn. The vendor's viewer draws the synchronisation point
// with the runtime and the model switch of a core with the hardware, whatever its documentation
// counts them as.
RowSource RowSourceOf(std::string_view event_type);
// The same in a file of hardware events alone, which has no rows of the runtime.
inline RowSource RowSourceOf(std::string_view event_type, bool is_hardware_only) {
  return is_hardware_only ? RowSource::kHardware : RowSourceOf(event_type);
}

// The category of a framework's event; empty: its file gave it none, and the letter of its phase is
// its type instead.
std::string_view FrameworkCategory(std::string_view event_type);

}  // namespace neurontrace
