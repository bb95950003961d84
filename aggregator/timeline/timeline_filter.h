// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aggregator/timeline/chunk_source.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/event_filter.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Which part of a capture a timeline shows. Empty selections mean everything. A plain value.
struct TimelineFilter {
  std::vector<std::string> instance_ids;
  std::vector<uint32_t> neuron_cores;  // nc_idx; streams without a core are then left out
  std::vector<GidRange> worker_gids;  // of the best evidence; streams without any are then left out
  std::vector<StreamKind> stream_kinds;
  EventFilter event_types;       // of framework events, their category
  uint64_t window_start_ns = 0;  // reference time; an event is shown that overlaps the window
  uint64_t window_end_ns = UINT64_MAX;
  bool host_samples = false;  // of kind kHost, too: for a reader that knows them

  bool has_window() const { return window_start_ns != 0 || window_end_ns != UINT64_MAX; }
  // A stream with a time of its own is in no window: where it is in time is not known.
  bool SelectsStream(const StreamDescription& stream) const;
  // Whether an event of the chunk may be selected by its type. True where its types are not known,
  // and where every type is selected, as what cannot be read is then to be told.
  bool MaySelectOf(const ChunkEntry& chunk) const;
};

// What is to be said of streams with a time of their own that the filter would select without its
// window; nullopt without any. `is_recorded`: they keep their times.
std::optional<std::string> OwnTimeWarning(std::span<const StreamDescription> streams,
                                          TimelineFilter filter, bool is_recorded);

}  // namespace neurontrace
