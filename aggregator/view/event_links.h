// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/derive/shape_fields.h"
#include "aggregator/view/event_id.h"
#include "lib/base/json_writer.h"

namespace neurontrace {

// An event as links name it. A plain value; times are reference time.
struct LinkedEvent {
  EventId id;
  uint64_t row = 0;  // ViewRowId
  std::string row_name;
  std::string name;  // as KeptName shortens it
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint8_t depth = 0;  // level on its row
  // What further links are looked for by.
  DerivedType type = DerivedType::kOther;
  std::optional<uint64_t> exec_id;

  // Writes the members of an object that is open.
  void WriteMembers(JsonWriter& json) const;
};

// Where the other end of a link lies.
enum class LinkDirection : uint8_t {
  kUpstream,    // it caused the event, or the event waited for it
  kDownstream,  // the event caused it, or it waited for the event
  kPeer,        // part of the same collective, and the clocks do not tell who came first
};
std::string_view NameOf(LinkDirection direction);

// The kind of links between the ranks of a collective.
inline constexpr std::string_view kCollectiveLink = "collective";

// A plain value.
struct EventLink {
  std::string_view kind;  // docs/formats/view_api.md lists them
  LinkDirection direction = LinkDirection::kUpstream;
  // No event of the same chain lies between the two.
  bool is_direct = true;
  LinkedEvent other;
};

// What one event is connected to, as far as was read.
struct EventLinks {
  // nullopt: the event was not found.
  std::optional<LinkedEvent> event;
  std::vector<EventLink> links;
  uint64_t more = 0;  // links beyond limits::kViewLinksMax
  // What should be connected and is not, as sentences with the reason.
  std::vector<std::string> unlinked;
};

}  // namespace neurontrace
