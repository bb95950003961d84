// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aggregator/align/core/pair_fit.h"
#include "aggregator/align/device/device_clock.h"
#include "aggregator/align/device/device_evidence.h"
#include "aggregator/align/device/sync_classification.h"

namespace neurontrace {

// As kHostAlgorithmVersion, for models of devices.
inline constexpr uint32_t kDeviceAlgorithmVersion = 2;

// Parameters of FitDeviceClock; the defaults are those of production.
struct DeviceFitParameters {
  PairFitParameters pair = DefaultPair();
  SyncParameters sync;
  // Without host events around executions, the two readings of a sync point are assumed to be at
  // most this far apart, and the bound is no better than that assumption.
  uint64_t apart_most_ns = 10'000'000;

  // Returns limits for a device's counter: wider rates and shorter reach than those of hosts.
  static PairFitParameters DefaultPair();
};

// Fits the model of a device core's counter (x) by its host's clock (y), which is the clock of the
// evidence's host times.
//
// What is possible follows from cause and effect alone. A device starts after its host has
// submitted and ends before its host knows, and a sync point is recorded after it was read. What is
// likely uses sync points as well. One of their readings is late, or early, by almost nothing at
// least; which one is learned from the points. Where a sync point contradicts a bracket, the
// bracket is believed.
//
// Evidence that fits nothing is rejected, counted and reported in the findings. No event is mapped
// by its own execution's sync point: a lost or wrong one costs accuracy, never truth. Pure.
DeviceClockModel FitDeviceClock(const DeviceEvidence& evidence,
                                const DeviceFitParameters& parameters);

}  // namespace neurontrace
