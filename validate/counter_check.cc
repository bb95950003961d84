// SPDX-License-Identifier: Apache-2.0
#include "validate/counter_check.h"

#include <vector>

#include "validate/limits.h"

namespace neurontrace {

void CounterCheck::TakeValue(TrackList::State& track, const ReadEvent& event) {
  ++summary_.counter_values;
  ++track.track.counter_values;
  if (track.track.kind != TrackKind::kCounter || !track.track.is_described) {
    log_.Add(TraceCheck::kCounterTrack,
             "A counter's value is on track {} ('{}'), which was not described as a counter.",
             track.track.uuid, track.track.name);
  }
  if (!event.has_counter_value || !event.is_counter_finite) {
    log_.Add(TraceCheck::kCounterValue, "A counter's event on track {} ('{}') has no {}value.",
             track.track.uuid, track.track.name, event.has_counter_value ? "finite " : "");
  }
}

void CounterCheck::TakeExtra(const ReadEvent& event, const TraceSequence& sequence) {
  const auto check = [&](uint64_t values, const std::vector<uint64_t>& uuids, uint64_t defaults) {
    if (values == 0) return;
    const uint64_t tracks = uuids.empty() ? defaults : uuids.size();
    if (values > validate_limits::kExtraCountersMax || values > tracks) {
      log_.Add(TraceCheck::kExtraCounters,
               "The event has {} extra counter values for {} tracks, {} at "
               "most.",
               values, tracks, validate_limits::kExtraCountersMax);
    }
    for (const uint64_t uuid : uuids) {
      TrackList::State* const track = tracks_.ForEvent(uuid);
      if (track == nullptr) return;
      ++summary_.counter_values;
      ++track->track.counter_values;
      if (track->track.kind != TrackKind::kCounter) {
        log_.Add(TraceCheck::kCounterTrack,
                 "An extra counter value is on track {}, which was not described as a counter.",
                 uuid);
      }
    }
  };
  check(event.extra_values, event.extra_uuids, sequence.default_extra_uuids);
  check(event.extra_double_values, event.extra_double_uuids, sequence.default_extra_double_uuids);
}

}  // namespace neurontrace
