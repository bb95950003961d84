// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aggregator/align/core/clock_map.h"
#include "aggregator/timeline/chunk_source.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/event_filter.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Numbers of streams from first to last, both included.
struct StreamRange {
  uint32_t first = 0;
  uint32_t last = 0;
  bool contains(uint32_t number) const { return first <= number && number <= last; }
};

// Which part of a capture a timeline shows. An empty selection means everything. A plain value.
struct TimelineFilter {
  std::vector<std::string> instance_ids;
  // The job that the workers named; empty: of every job, and of none.
  std::string job;
  // Values of nc_idx. Streams that are not those of a core are then omitted.
  std::vector<uint32_t> neuron_cores;
  // Ranks by the best evidence. Streams without evidence are then omitted.
  std::vector<GidRange> worker_gids;
  std::vector<StreamKind> stream_kinds;
  // Numbers as in StreamDescription.
  std::vector<StreamRange> streams;
  // For framework events this selects by their category.
  EventFilter event_types;
  // Reference time. An event is shown if it overlaps [window_start_ns, window_end_ns).
  uint64_t window_start_ns = 0;
  uint64_t window_end_ns = UINT64_MAX;
  // Reference time at which streams with their own time begin; they are then in time windows, too.
  // nullopt: at the capture's first event, and in no window.
  std::optional<uint64_t> own_time_begin_ns;
  // Also selects streams of kind kHost. Only for readers that know their counters.
  bool host_samples = false;

  bool has_window() const { return window_start_ns != 0 || window_end_ns != UINT64_MAX; }
  // Returns whether any event of the stream may be shown. A stream with its own time is in no time
  // window, as its place in time is not known, unless own_time_begin_ns gives it one.
  bool SelectsStream(const StreamDescription& stream) const;
  // Returns whether an event of the chunk may be selected by its type. True if the chunk's types
  // are not known, and if every type is selected: then an unreadable chunk must be reported even if
  // it turns out to have only metadata.
  bool CanSelectFrom(const ChunkEntry& chunk) const;
};

// Returns the map that puts the first event of a stream with its own time at this reference time;
// the identity if it has none.
ClockMap OwnTimeClock(const StreamDescription& stream, uint64_t begin_ns);

// Returns the warning about streams with their own time that the filter would select without its
// window, or nullopt if there are none. `is_recorded` says that they keep their times.
std::optional<std::string> OwnTimeWarning(std::span<const StreamDescription> streams,
                                          TimelineFilter filter, bool is_recorded);

}  // namespace neurontrace
