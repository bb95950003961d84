// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "aggregator/align/host_world_test_support.h"
#include "aggregator/align/reference_utc.h"

namespace neurontrace {

// UTC in a HostWorld: the reference is slow by 12 ppm. Its keeper, and hosts, read it from sources
// that promise to be within `bound_ns`, and are off by up to half of that.
struct UtcWorld {
  static constexpr uint64_t kOwnRawBegin = 7'200'000'000'000;
  static constexpr uint64_t kOwnOffset = HostWorld::kReferenceBegin - kOwnRawBegin;

  explicit UtcWorld(uint64_t seed) : random(seed) {}

  static uint64_t UtcAt(uint64_t reference_ns) {
    const auto since = static_cast<int64_t>(reference_ns - HostWorld::kReferenceBegin);  // or until
    return reference_ns + 2'500'000'000 + static_cast<uint64_t>(since / 1'000'000 * 12);
  }

  // What a source says when UTC is this. `lie_ns`: by which it is beyond what it promises.
  UtcReading Reading(UtcSource source, uint64_t raw_ns, uint64_t utc_ns, double lie_ns = 0) {
    const double off =
        std::uniform_real_distribution<double>(-bound_ns / 2, bound_ns / 2)(random) + lie_ns;
    const uint64_t middle = utc_ns + static_cast<uint64_t>(std::llround(off));
    const auto half = static_cast<uint64_t>(bound_ns);
    return {source, raw_ns, middle - half, middle + half};
  }
  // Of the host, every five seconds.
  void Read(const HostWorld& world, UtcSource source, double seconds, ClockEvidence& evidence,
            double lie_ns = 0) {
    for (double s = 1.3; s < seconds; s += interval_s) {
      const uint64_t raw = world.RawAt(s);
      evidence.utc.push_back(Reading(source, raw, UtcAt(world.TruthAt(raw)), lie_ns));
    }
    Sort(evidence);
  }
  // Of the keeper, from a minute before the host's first second to a minute after its last.
  void ReadOwn(UtcSource source, double seconds, ClockEvidence& own, double lie_ns = 0) {
    for (double s = -60; s < seconds + 60; s += interval_s) {
      const auto raw = static_cast<uint64_t>(static_cast<double>(kOwnRawBegin) + s * 1e9);
      own.exchanges.push_back({raw, raw + kOwnOffset, raw + kOwnOffset, raw, 1, {}});
      own.utc.push_back(Reading(source, raw, UtcAt(raw + kOwnOffset), lie_ns));
    }
    Sort(own);
  }

  static void Sort(ClockEvidence& evidence) {
    std::stable_sort(evidence.utc.begin(), evidence.utc.end(),
                     [](const auto& a, const auto& b) { return a.raw_ns < b.raw_ns; });
  }

  std::mt19937_64 random;
  double bound_ns = 5'000;
  double interval_s = 5;
};

}  // namespace neurontrace
