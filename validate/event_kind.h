// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "validate/event_reader.h"

namespace neurontrace {

// What an event is, by its type, or by the phase of a legacy event in it.
enum class EventKind : uint8_t {
  kBegin,
  kEnd,
  kInstant,
  kComplete,  // a slice and how long it is, in one
  kCounter,
  kState,
  kFlow,       // of a legacy event: an end of an arrow on the slice around it
  kElsewhere,  // on a track that is told by ids of threads or operations, not by a uuid
  kRaw,        // not on a track: metadata, samples, what Perfetto keeps as it is
  kNone,       // of a type that does not exist
};

// `track_uuid` is the event's or its sequence's default, 0: neither is there. `has_thread`: the
// sequence says by a ThreadDescriptor which thread it is.
EventKind KindOf(const ReadEvent& event, uint64_t track_uuid, bool has_thread);

}  // namespace neurontrace
