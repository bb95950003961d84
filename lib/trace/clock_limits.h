// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The limits of clock evidence, with what happens at each; lib/trace/limits.h has all others.
namespace neurontrace::limits {

// One batch of evidence. An agent gives a batch well before it has so many entries; a received one
// beyond either is refused, with the call.
inline constexpr size_t kClockBatchEntriesMax = 4'096;
inline constexpr size_t kClockBatchBytesMax = 256u << 10;  // encoded
// Agent: batches that wait for an aggregator; at some eighty bytes a second without one they
// last for half a day. Beyond: the oldest are dropped, and counted.
inline constexpr size_t kClockBacklogBytesMax = size_t{4} << 20;
inline constexpr size_t kClockBacklogBatchesMax = 65'536;
// Aggregator: calls of the ClockGateway that report, at once; beyond: refused.
inline constexpr size_t kClockCallsMax = 32'768;

// Aggregator: probes over UDP that are answered, of one key: an agent asks 8 times a second, and 64
// times at once where clocks may have changed. Beyond: dropped, and counted.
inline constexpr uint32_t kProbesPerSecondMax = 50;
inline constexpr uint32_t kProbesAtOnceMax = 512;
// Aggregator: packets that name a key and get no answer: forged, replayed, or beyond the former.
// Beyond: whatever names the key is dropped without a look at its code, and counted; its agent asks
// in a gRPC call meanwhile.
inline constexpr uint32_t kProbeFailuresPerSecondMax = 1'000;
inline constexpr uint32_t kProbeFailuresAtOnceMax = 2'000;

// Evidence of one logical core's device clocks: executions under way, and spans without their
// stops; the oldest are forgotten. What is kept of a capture for each of its physical cores;
// beyond: every second execution or sync point, then every fourth ...
inline constexpr size_t kDeviceExecutionsOpenMax = 256;
inline constexpr size_t kDeviceSpansOpenMax = 4'096;
inline constexpr size_t kDeviceCoresMax = 8;
inline constexpr size_t kDeviceExecutionsMax = 65'536;
inline constexpr size_t kDeviceSyncPointsMax = 65'536;

// Stored models of a capture's clocks: one row per machine and one per device core. Beyond either
// they are not stored, and fitted again for each request.
inline constexpr size_t kClockModelRowsMax = size_t{1} << 20;
inline constexpr size_t kClockModelBytesMax = size_t{256} << 20;  // of all rows

// Check of the order of what happened on several instances: parts in collectives and barriers that
// are held of a capture; beyond: those of every second execution, every fourth ... are left out.
// The worst that are kept to be shown, of each kind; the others are counted.
inline constexpr size_t kOrderEventsMax = size_t{1} << 20;
inline constexpr size_t kOrderViolationsShownMax = 16;

static_assert(kClockBatchBytesMax < kClockBacklogBytesMax, "a backlog holds any batch");

static_assert(kProbesPerSecondMax < kProbeFailuresPerSecondMax &&
              kProbesAtOnceMax < kProbeFailuresAtOnceMax);

// Aggregator: instances whose clock's bound is a series of its own; beyond, those that are known
// best are left out and counted in neurontrace_aggregator_clock_bounds_left_out.
inline constexpr size_t kClockBoundSeriesMax = 2'048;

}  // namespace neurontrace::limits
