// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/timeline/chunk_source.h"
#include "aggregator/timeline/timeline_filter.h"

namespace neurontrace {

struct EventLinesTotal {
  uint64_t chunks_read = 0;
  uint64_t chunks_total = 0;     // of the selected streams, in and out of the time window
  uint64_t chunks_left_out = 0;  // that cannot be read
  uint64_t events = 0;
  uint64_t bytes = 0;
  std::vector<std::string> warnings;
};

struct EventLinesRequest {
  TimelineFilter filter;                  // its window is of raw times
  std::string_view certificate_json;      // empty: none is written
  const CaptureClocks* clocks = nullptr;  // nullptr: nothing is known of any clock
  bool raw_clocks = false;                // what is known is not made use of
};

// The `events` format: what was recorded and not what is made of it. Stream after stream, one JSON
// object a line,
//
//   {"stream":3,"instance_id":"i-0a","pid":4711,"nc_idx":1,"worker_gid":35,"event":{…}}
//
// after a first line {"certificate":{…},"clocks":{…}} with what is given of the two (the second is
// ClockReport::Json), with the event as its source wrote it (lib/trace/event_json.h) and raw times;
// nothing is paired, sorted beyond its chunk or moved. Where the host's clock is known, a line has
// `reference_ns`, its time by the reference clock, and, where it is known, `eps_ns`: how far that
// can be from the truth (not of an event that a device stamped, whose time the runtime made).
// `nc_idx` and `worker_gid` are -1 where there is none; a framework file's lines have its name as
// "file", and those of a host's samples (lib/trace/host_samples.h) "host":true and the pid 0. Of
// the time window, events with start <= time < end are written.
//
// `write` takes each piece before it returns; its error ends the export. `progress` is told now and
// then; false ends the export with CANCELLED. A chunk that cannot be read is passed over with a
// warning. Holds one chunk in memory.
absl::StatusOr<EventLinesTotal> WriteEventLines(
    ChunkSource& source, const EventLinesRequest& request,
    const std::function<absl::Status(std::string_view)>& write,
    const std::function<bool(const EventLinesTotal&)>& progress);

}  // namespace neurontrace
