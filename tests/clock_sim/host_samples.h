// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/clock_sim/host_method.h"

namespace neurontrace {

// What a method for one smooth clock sees: nanoseconds relative to an origin, on the axis that the
// stamps are on. reference - local is between `low` (at receive) and `high` (at send).
struct Sample {
  uint64_t order = 0;  // raw, of the receipt
  double send = 0;
  double receive = 0;
  double low = 0;
  double high = 0;
  double RoundTrip() const { return high - low; }
  double Middle() const { return (low + high) / 2; }
  double MiddleX() const { return (send + receive) / 2; }
};

struct Ask {
  uint64_t order = 0;  // raw
  double x = 0;
};

// reference - local, relative to the same origin.
struct Answer {
  double offset = 0;
  double bound = Mapped::kNoBound;
};

// Answers each ask of one reference epoch. True: gave up, the answers are guesses.
using MapSamples = bool (*)(std::span<const Sample> samples, std::span<const Ask> asks,
                            std::span<Answer> answers);

// Cuts the records where the reference restarted, which a method without epochs is spared, and
// lets it map each part by itself.
HostMapping MapEpochs(const HostRecords& records, bool realtime_stamps,
                      std::span<const Stamp> stamps, MapSamples method);

}  // namespace neurontrace
