// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

#include "aggregator/align/core/clock_reading.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// A host whose truth a test knows: the reference as a function of raw, and a path to it. Each field
// may be changed before evidence is made.
struct HostWorld {
  static constexpr uint64_t kRawBegin = 86'400'000'000'000;
  static constexpr uint64_t kReferenceBegin = 1'750'000'000'000'000'000;

  explicit HostWorld(uint64_t seed) : random(seed) {
    rate_ppm = std::uniform_real_distribution<double>(-30, 30)(random);
    phase = std::uniform_real_distribution<double>(0, 6)(random);
  }

  // y - x was ahead of its smooth course by so much from this time on.
  struct Step {
    double at_s = 0;
    double by_ns = 0;
  };

  uint64_t RawAt(double s) const { return kRawBegin + static_cast<uint64_t>(s * 1e9); }
  uint64_t TruthAt(uint64_t raw_ns) const {
    const double s = static_cast<double>(raw_ns - kRawBegin) * 1e-9;
    const double turn = 2 * std::numbers::pi / wave_period_s;
    double offset = rate_ppm * 1e3 * s + wave_ppm * 1e3 / turn * std::sin(s * turn + phase);
    for (const Step& step : steps) offset += s >= step.at_s ? step.by_ns : 0;
    return kReferenceBegin + (raw_ns - kRawBegin) +
           static_cast<uint64_t>(std::llround(offset + 1e9));
  }

  // An exchange sent at `s`. Its stamps are of the truth, but for the delays.
  ClockExchange Exchange(double s) {
    std::exponential_distribution<double> jitter(1 / jitter_ns);
    const uint64_t send = RawAt(s);
    const uint64_t arrival = send + static_cast<uint64_t>(forward_ns + jitter(random));
    const uint64_t answer = arrival + 15'000;
    const uint64_t receipt = answer + static_cast<uint64_t>(backward_ns + jitter(random));
    // The receipt at the reference is stamped up to a nanosecond late, the answer early.
    return {send, TruthAt(arrival) + 1, TruthAt(answer) - 1, receipt, epoch, ProbePath::kUdp};
  }

  void Probe(double from_s, double to_s, ClockEvidence& evidence) {
    for (double s = from_s; s < to_s; s += interval_s) {
      for (int i = 0; i < 4; ++i) evidence.exchanges.push_back(Exchange(s + i * 5e-5));
    }
  }
  ClockEvidence Evidence(double seconds) {
    ClockEvidence evidence;
    Probe(0, seconds, evidence);
    return evidence;
  }

  double ErrorOf(uint64_t raw_ns, uint64_t y_ns) const {
    return static_cast<double>(static_cast<int64_t>(y_ns - TruthAt(raw_ns)));
  }

  std::mt19937_64 random;
  double rate_ppm = 0;
  double wave_ppm = 0.2;
  double wave_period_s = 300;
  double phase = 0;
  double forward_ns = 30'000;
  double backward_ns = 30'000;
  double jitter_ns = 6'000;
  double interval_s = 0.5;
  uint32_t epoch = 1;
  std::vector<Step> steps;
};

// Calls check(raw) at times in and shortly around `seconds` of evidence.
template <typename Check>
void AtTimes(const HostWorld& world, double seconds, Check check) {
  for (double s = 0; s < seconds + 2; s += 0.377) check(world.RawAt(s));
}

// No estimate there is farther off than its bound.
inline void ExpectHolds(const HostWorld& world, double seconds, const ClockModel& model) {
  AtTimes(world, seconds, [&](uint64_t raw) {
    const ClockEstimate estimate = EvaluateClock(model, raw).estimate;
    ASSERT_LE(std::abs(world.ErrorOf(raw, estimate.y_ns)), static_cast<double>(estimate.bound_ns))
        << "at raw " << raw - HostWorld::kRawBegin;
  });
}

}  // namespace neurontrace
