// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/timeline/timeline_reader.h"
#include "aggregator/view/event_query.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// The streams of a capture as the page lists them: in the order of Perfetto's rows, with ranks,
// times, bounds and what is missing. Made without reading an event. Constant after Make, so that
// any thread may read it.
class CaptureLayout {
 public:
  // `clocks` are copied; `record` tells whether the capture still runs.
  static CaptureLayout Make(const CaptureRecord& record, CaptureDescription capture,
                            CaptureClocks clocks);

  const CaptureDescription& capture() const { return capture_; }
  const CaptureClocks& clocks() const { return clocks_; }
  // Changes when streams, ranks or models of clocks do; then what was drawn may be at other places.
  uint64_t version() const { return version_; }
  // Reference times of the first and the last event; both 0 without events. Streams with their own
  // time count only if there are no others.
  uint64_t begin_ns() const { return begin_ns_; }
  // The first event of a worker, from which windows count. Samples of hosts may begin before; 0 if
  // there is none.
  uint64_t first_event_ns() const { return first_event_ns_; }
  uint64_t end_ns() const { return end_ns_; }
  // Returns the map from the stream's recorded times to reference times. A stream with its own time
  // begins where the capture does.
  const ClockMap& ClockOf(const StreamDescription& stream) const;
  bool is_live() const { return !HasEnded(record_.state); }
  const CaptureRecord& record() const { return record_; }

  // Returns the numbers of those `chosen` streams, or of all if none is chosen, whose events the
  // query may match.
  std::vector<uint32_t> StreamNumbers(const EventQuery& query,
                                      const std::vector<uint32_t>& chosen) const;
  // Returns the answer of `layout` in docs/formats/view_api.md.
  std::string Json() const;

 private:
  CaptureLayout() = default;
  void FindTimes();
  // Lets streams with their own time begin with the capture.
  void PlaceOwnTimes(bool are_alone);
  void FindVersion();

  CaptureRecord record_;
  CaptureDescription capture_;
  CaptureClocks clocks_;
  std::vector<RankBinding> ranks_;           // by stream
  std::vector<uint32_t> order_;              // of display
  std::map<uint32_t, ClockMap> own_clocks_;  // of streams with their own time, by number
  std::vector<std::string> warnings_;
  uint64_t version_ = 0;
  uint64_t begin_ns_ = 0;
  uint64_t first_event_ns_ = 0;
  uint64_t end_ns_ = 0;
};

}  // namespace neurontrace
