// SPDX-License-Identifier: Apache-2.0
// For tests: clocks with something in every field, and evidence to fit.
#pragma once

#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/align/core/clock_reading.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

inline constexpr uint64_t kTestSecond = 1'000'000'000;
inline constexpr uint64_t kTestStart = 1'700'000'000 * kTestSecond;  // raw 0, by the reference

// Two instances, one of them without a model, and a device's core.
inline CaptureClocks OneOfEach() {
  CaptureClocks clocks;
  InstanceClock clock;
  clock.instance_id = "i-a";
  clock.boot_id = "boot";
  clock.model = {
      .algorithm_version = 3,
      .segments = {{SegmentCause::kBegin,
                    {{100, kTestStart, 70, 7}, {kTestSecond, kTestStart + kTestSecond - 5, 90, 9}}},
                   {SegmentCause::kCounterReset, {{2 * kTestSecond, kTestStart * 2}}}},
      .findings = {{ClockFindingKind::kInconsistent, 5, 9, -1'234, "odd"}},
      .wander_ns_per_s2 = 50,
      .evidence_used = 1'000,
      .evidence_rejected = 2};
  clock.realtime =
      *ClockMap::FromPieces({{10, 20, -1'000'000, 55}, {kTestStart, kTestStart + 9, 77, {}}});
  clock.offset_ns = -3'000'000'000;
  clock.drift_ppb = 12'345;
  clock.bound_ns = UINT64_MAX;
  clock.likely_bound_ns = 4'000;
  clock.exchanges = 8;
  clock.sources = {"udp", "phc"};
  clocks.instances.push_back(clock);
  clocks.instances.push_back(
      {.instance_id = "i-b", .boot_id = "boot", .model = {}, .realtime = {}});
  DeviceClock device;
  device.worker = {.instance_id = "i-a",
                   .boot_id = "boot",
                   .pid = 4'711,
                   .start_time_ticks = 99,
                   .container_id = "c"};
  device.core = {.nc_idx = 17, .physical = 34};
  device.map.parts = {{1, 5, 7, 9, *ClockMap::FromPieces({{0, 0, 0, {}}, {77, 1'000, 3, 12}})},
                      {6, 8, 1, 2, *ClockMap::FromPieces({{40, 2'000, -3, 0}})}};
  device.bound_ns = 900;
  device.likely_bound_ns = 90;
  device.executions = 5;
  device.sync_points = 4;
  device.findings = {{ClockFindingKind::kBreak, 3, 4, 5, "reset"}};
  clocks.devices.push_back(device);
  // A device about which nothing is known.
  clocks.devices.push_back({.worker = device.worker, .core = {.nc_idx = 18}, .map = {}});
  clocks.order.push_back({.job = "slurm 7",
                          .world_size = 8,
                          .event_type = "cc_running",
                          .events = 20,
                          .left_out = 2,
                          .instances = 9,
                          .violated = 3,
                          .beyond_bounds = 1,
                          .worst_ns = 70,
                          .is_conclusive = true,
                          .violations = {{kTestStart, 70, 80, 5, 6, "i-b", "i-a"}},
                          .words = "3 of 9"});
  return clocks;
}

// Of a host whose REALTIME is so far ahead of the reference, probed twice a second over ways of 30
// us each.
inline ClockEvidence SomeEvidence(uint64_t seconds, int64_t ahead_ns = 12'345) {
  ClockEvidence evidence;
  for (uint64_t raw = kTestSecond; raw < seconds * kTestSecond; raw += kTestSecond / 2) {
    evidence.exchanges.push_back({.send_raw_ns = raw,
                                  .reference_receive_ns = kTestStart + raw + 30'000,
                                  .reference_send_ns = kTestStart + raw + 31'000,
                                  .receive_raw_ns = raw + 61'000,
                                  .reference_epoch = 1,
                                  .path = ProbePath::kUdp});
    if (raw % kTestSecond != 0) continue;
    evidence.snapshots.push_back(
        {.raw_begin_ns = raw,
         .raw_end_ns = raw + 100,
         .realtime_ns = kTestStart + raw + 50 + static_cast<uint64_t>(ahead_ns),
         .monotonic_ns = raw + 50,
         .boottime_ns = raw + 50,
         .tick_us = 10'000});
  }
  return evidence;
}

// Nothing overflows, wherever a clock is asked.
inline void ReadEverywhere(const InstanceClock& clock) {
  for (int shift = 0; shift < 64; ++shift) {
    const uint64_t x_ns = uint64_t{1} << shift;
    for (const uint64_t x : {x_ns - 1, x_ns, ~x_ns}) {
      EvaluateClock(clock.model, x);
      clock.realtime.ToReference(x);
      clock.realtime.ErrorBoundNs(x);
    }
  }
  for (const ClockSegment& segment : clock.model.segments) {
    for (const ClockKnot& knot : segment.knots) {
      for (const uint64_t x : {knot.x_ns - 1, knot.x_ns, knot.x_ns + 1}) {
        EvaluateClock(clock.model, x);
      }
    }
  }
}

}  // namespace neurontrace
