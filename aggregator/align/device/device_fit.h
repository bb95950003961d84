// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aggregator/align/core/pair_fit.h"
#include "aggregator/align/device/device_clock.h"
#include "aggregator/align/device/device_evidence.h"
#include "aggregator/align/device/sync_judgement.h"

namespace neurontrace {

// As kHostAlgorithmVersion, for what the same events give.
inline constexpr uint32_t kDeviceAlgorithmVersion = 2;

struct DeviceFitParameters {
  PairFitParameters pair = DefaultPair();
  SyncParameters sync;
  // Where no host event brackets the executions, a sync point's two readings are taken to be no
  // farther apart than this, and the bound is worth no more than that.
  uint64_t apart_most_ns = 10'000'000;

  static PairFitParameters DefaultPair();
};

// The model of a device core's counter (x) by its host's clock (y): the clock that the evidence's
// host times are of.
//
// What is possible follows from cause and effect alone: a device starts after its host has
// submitted, and ends before its host knows; a sync point is written down after it was read. What
// is likely builds on sync points besides, of which the one reading is late, or early, by at least
// almost nothing: learned from the points themselves. Where a sync point contradicts a bracket, the
// bracket is believed.
//
// Evidence that fits nothing is left out, counted and told in the findings. No event is mapped by
// its own execution's sync point: a lost or wrong one costs accuracy, never truth.
DeviceClockModel FitDeviceClock(const DeviceEvidence& evidence,
                                const DeviceFitParameters& parameters);

}  // namespace neurontrace
