// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "aggregator/align/core/clock_model.h"
#include "tests/clock_sim/host_world.h"

namespace neurontrace {

// Ways to bring a host's stamps to the reference. All get the same records and stamps, and nothing
// of the truth.

// An event's, on the clock that the scenario says; the other is for the order alone.
struct Stamp {
  uint64_t raw_ns = 0;
  uint64_t realtime_ns = 0;
};

struct Mapped {
  static constexpr double kNoBound = std::numeric_limits<double>::infinity();

  uint64_t reference_ns = 0;
  double bound_ns = kNoBound;
  double likely_bound_ns = kNoBound;
};

// What a method made of one host.
struct HostMapping {
  std::vector<Mapped> mapped;  // one a stamp
  bool gave_up = false;        // the method says itself that it does not fit
  ClockModel model = {};       // of a method that makes one
  uint64_t fit_ns = 0;         // processor time that the model took
};

// Stamps ascend in raw.
using MapHost = HostMapping (*)(const HostRecords& records, bool realtime_stamps,
                                std::span<const Stamp> stamps);

struct HostMethod {
  std::string_view name;
  MapHost map = nullptr;
};

// The product.
HostMapping MapByProduct(const HostRecords& records, bool realtime_stamps,
                         std::span<const Stamp> stamps);
// The peers, as their sources or RFCs say, on one line each in docs/user/clock_accuracy.md.
std::span<const HostMethod> HostBaselines();

}  // namespace neurontrace
