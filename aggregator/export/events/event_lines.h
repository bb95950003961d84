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

// Progress while lines are written, and the totals at the end.
struct EventLinesTotal {
  uint64_t chunks_read = 0;
  // Chunks of the selected streams, inside and outside the time window.
  uint64_t chunks_total = 0;
  // Chunks that could not be read.
  uint64_t chunks_left_out = 0;
  uint64_t events = 0;
  uint64_t bytes = 0;
  std::vector<std::string> warnings;
};

// Borrows the clocks and the certificate, which must outlive the call.
struct EventLinesRequest {
  // Its window is one of raw times.
  TimelineFilter filter;
  // Empty: none is written.
  std::string_view certificate_json;
  // nullptr: nothing is known of any clock.
  const CaptureClocks* clocks = nullptr;
  // Ignores what is known of clocks.
  bool raw_clocks = false;
};

// Writes the `events` format: what was recorded rather than what is derived from it. Stream after
// stream, one JSON object a line:
//
//   {"stream":3,"instance_id":"i-0a","pid":4711,"nc_idx":1,"worker_gid":35,"event":{…}}
//
// The first line is {"certificate":{…},"clocks":{…}} with whichever of the two is given (the second
// is ClockReport::Json). The event is as its source wrote it (lib/trace/event_json.h), with raw
// times; nothing is paired, sorted beyond its chunk, or moved.
//
// If the host's clock is known, a line has `reference_ns`, its time by the reference clock. It also
// has `eps_ns`, how far that can be from the truth, if this is known. Events that a device stamped
// lack it, because the runtime derived their time. `nc_idx` and `worker_gid` are -1 if there is
// none. A framework file's lines have its name as "file"; those of a host's samples
// (lib/trace/host_samples.h) have "host":true and the pid 0. Events with start <= time < end of the
// window are written.
//
// `write` consumes each piece before it returns; its error ends the export. `progress` is called
// after each chunk; false ends the export with CANCELLED. A chunk that cannot be read is skipped
// with a warning. Holds one chunk in memory. Runs on the calling thread.
absl::StatusOr<EventLinesTotal> WriteEventLines(
    ChunkSource& source, const EventLinesRequest& request,
    const std::function<absl::Status(std::string_view)>& write,
    const std::function<bool(const EventLinesTotal&)>& progress);

}  // namespace neurontrace
