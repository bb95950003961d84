// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/align/core/clock_maps.h"
#include "aggregator/store/stream_record.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// The present time by the clocks of several hosts, which need not agree.
struct NowOfHosts {
  uint64_t earliest_ns = 0;
  uint64_t latest_ns = 0;
};
// Returns the present by the REALTIME clocks of the hosts of `streams`, which `maps` lead to the
// reference. `realtime_ns` is the aggregator's own time, used for hosts without a map. The
// aggregator's clock alone would not do: it, or a host's, may have been set. A pure function.
NowOfHosts HostsNow(const std::vector<StreamRecord>& streams, const ClockMaps& maps,
                    uint64_t reference_ns, uint64_t realtime_ns);

// Turns a window that is given as distances before now into two moments, from the earliest now to
// the latest. Leaves any other window alone. Fails with INVALID_ARGUMENT if the window ends before
// it begins.
absl::Status ResolveBeforeNow(const NowOfHosts& now, v1::ExportRequest& request);

// Tracks until when the streams of a capture that is being recorded are known: agents send events
// that are a moment old. Times are reference nanoseconds. Used by one thread.
class KnownUntil {
 public:
  // A stream without news for longer than this before the window's end is quiet, and not waited
  // for.
  static constexpr uint64_t kQuietNs = 5'000'000'000;
  static constexpr size_t kNamedMax = 4;

  // `end_ns` is the window's end in reference time. `maps` lead there from the hosts' REALTIME and
  // must outlive this.
  KnownUntil(uint64_t end_ns, const ClockMaps& maps) : end_ns_(end_ns), maps_(maps) {}

  // Evaluates the streams as they are now. Returns true once all that are not quiet are known to
  // the end.
  bool Observe(const std::vector<StreamRecord>& streams);
  // Returns what the last Look found, and whether the window from `start_ns` begins before what has
  // expired or contains times in which other captures had workers.
  std::vector<std::string> Notes(uint64_t start_ns) const;

 private:
  // A stream that is not known to the window's end.
  struct Short {
    std::string name;
    uint64_t missing_ns = 0;
    bool quiet = false;
  };
  // A suspension in reference time, with the worker's name.
  struct SuspendedWorker {
    std::string name;
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    std::string description;
  };
  // Returns a text about the suspensions inside the window, or an empty one.
  std::string SuspensionNote(uint64_t start_ns) const;
  uint64_t ReferenceNs(const StreamRecord& stream, uint64_t raw_ns) const;

  const uint64_t end_ns_;
  const ClockMaps& maps_;
  // Streams that have not ended.
  size_t streams_ = 0;
  // Those of them that are not known to the end.
  std::vector<Short> short_;
  std::vector<SuspendedWorker> suspended_;
  // The latest of all streams.
  uint64_t expired_until_ns_ = 0;
};

}  // namespace neurontrace
