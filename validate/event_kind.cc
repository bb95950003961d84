// SPDX-License-Identifier: Apache-2.0
#include "validate/event_kind.h"

#include "validate/perfetto_numbers.h"

namespace neurontrace {
namespace {

using perfetto_read::EventType;

EventKind KindOfPhase(const ReadLegacyEvent& legacy, uint64_t track_uuid) {
  EventKind kind = EventKind::kRaw;
  switch (*legacy.phase) {
    case 'B':
      kind = EventKind::kBegin;
      break;
    case 'E':
      kind = EventKind::kEnd;
      break;
    case 'X':
      kind = EventKind::kComplete;
      break;
    case 'R':
      kind = EventKind::kInstant;
      break;
    case 'i':
    case 'I':  // of a process or the whole trace: on a track of its own
      kind = legacy.is_of_thread ? EventKind::kInstant : EventKind::kElsewhere;
      break;
    case 's':
    case 't':
    case 'f':
      kind = EventKind::kFlow;
      break;
    case 'b':  // operations, which have tracks by their ids
    case 'e':
    case 'n':
    case 'S':
    case 'T':
    case 'p':
    case 'F':
      return EventKind::kElsewhere;
    default:
      return EventKind::kRaw;
  }
  return track_uuid == 0 ? EventKind::kElsewhere : kind;
}

}  // namespace

EventKind KindOf(const ReadEvent& event, uint64_t track_uuid, bool has_thread) {
  const auto type = static_cast<EventType>(event.type);
  const bool is_by_thread = track_uuid == 0 && (has_thread ? !event.track_uuid || event.type == 0
                                                           : event.legacy.has_process);
  if (type == EventType::kCounter) return EventKind::kCounter;
  if (type == EventType::kState) return EventKind::kState;
  if (event.legacy.phase) return KindOfPhase(event.legacy, track_uuid);
  if (is_by_thread && type != EventType::kUnspecified) return EventKind::kElsewhere;
  switch (type) {
    case EventType::kBegin:
      return EventKind::kBegin;
    case EventType::kEnd:
      return EventKind::kEnd;
    case EventType::kInstant:
      return EventKind::kInstant;
    default:
      return event.legacy.is_there ? EventKind::kRaw : EventKind::kNone;
  }
}

}  // namespace neurontrace
