// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// Identifies an event of a capture in every question of the page: made of what was recorded, so
// that neither the window nor a better model of a clock changes it. Events that are equal in all of
// it share an id. A plain value; docs/formats/view_api.md defines the text.
struct EventId {
  uint32_t stream = 0;  // StreamDescription::number
  uint64_t raw_start_ns = 0;
  uint32_t hash = 0;  // of name, thread and the runtime's id

  // `name` is EventAttributes::NameOf.
  static EventId Of(const TimelineRecord& record, uint32_t stream, std::string_view name);
  // Parses "4-1750000000000000100-2718281828". Fails with INVALID_ARGUMENT that names the text.
  static absl::StatusOr<EventId> Parse(std::string_view text);
  std::string ToString() const;

  friend auto operator<=>(const EventId&, const EventId&) = default;
};

}  // namespace neurontrace
