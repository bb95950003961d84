// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/align/core/clock_map.h"
#include "aggregator/store/stream_record.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// What time it is, by the clocks of several hosts, which need not agree.
struct NowOfHosts {
  uint64_t earliest_ns = 0;
  uint64_t latest_ns = 0;
};
// By the REALTIME of the hosts of `streams`, which `maps` lead to the reference. `realtime_ns`: the
// aggregator's own, for hosts without a map. The aggregator's alone would not do: anybody may set
// it, or a host's.
NowOfHosts HostsNow(const std::vector<StreamRecord>& streams, const ClockMaps& maps,
                    uint64_t reference_ns, uint64_t realtime_ns);

// Makes a window that is said as distances before now one of two moments, from the earliest now to
// the latest; nothing to do for any other. INVALID_ARGUMENT where it ends before it begins.
absl::Status ResolveBeforeNow(const NowOfHosts& now, v1::ExportRequest& request);

// How far the streams of a capture that goes on are known: agents send what is a moment old. One
// thread.
class KnownUntil {
 public:
  // A stream of which nothing came for so long is quiet, and not waited for.
  static constexpr uint64_t kQuietNs = 5'000'000'000;
  static constexpr size_t kNamedMax = 4;

  // `end_ns`: of the window, in reference time, which `maps` lead to from the hosts' REALTIME; it
  // outlives this.
  KnownUntil(uint64_t end_ns, const ClockMaps& maps) : end_ns_(end_ns), maps_(maps) {}

  // Looks at the streams as they are now. True: those that are not quiet are known to the end.
  bool Look(const std::vector<StreamRecord>& streams);
  // What was seen last, and that the window begins before what has expired, or that other captures
  // had workers within it, where that is so.
  std::vector<std::string> Notes(uint64_t start_ns) const;

 private:
  struct Short {
    std::string name;
    uint64_t missing_ns = 0;
    bool quiet = false;
  };
  struct GaveWay {
    std::string name;
    uint64_t from_ns = 0;
    uint64_t to_ns = 0;
    std::string words;
  };
  std::string SuspensionNote(uint64_t start_ns) const;
  uint64_t ReferenceNs(const StreamRecord& stream, uint64_t raw_ns) const;

  const uint64_t end_ns_;
  const ClockMaps& maps_;
  size_t streams_ = 0;        // that have not ended
  std::vector<Short> short_;  // of these, that are not known to the end
  std::vector<GaveWay> gave_way_;
  uint64_t expired_until_ns_ = 0;  // the latest of all streams
};

}  // namespace neurontrace
