// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The limits of clock evidence, with the policy at each. lib/trace/limits.h has the general ones.
namespace neurontrace::limits {

// One batch of evidence. An agent sends a batch well before it has this many entries; a received
// one beyond either limit is refused, and its call is ended.
inline constexpr size_t kClockBatchEntriesMax = 4'096;
inline constexpr size_t kClockBatchBytesMax = 256u << 10;  // encoded
// Agent: batches that wait for an aggregator. At about eighty bytes a second they last for half a
// day. Beyond: the oldest are dropped, and counted.
inline constexpr size_t kClockBacklogBytesMax = size_t{4} << 20;
inline constexpr size_t kClockBacklogBatchesMax = 65'536;
// Aggregator: calls of the ClockGateway that report, at once; beyond: refused.
inline constexpr size_t kClockCallsMax = 32'768;

// Aggregator: answered probes over UDP of one key. An agent asks 8 times a second, and 64 times at
// once when clocks may have changed. Beyond: dropped, and counted.
inline constexpr uint32_t kProbesPerSecondMax = 50;
inline constexpr uint32_t kProbesAtOnceMax = 512;
// Aggregator: packets with a known key id that get no answer because they are forged, replayed, or
// beyond the limit above. Beyond: all packets with that key id are dropped without checking their
// code, and counted; the agent probes in a gRPC call meanwhile.
inline constexpr uint32_t kProbeFailuresPerSecondMax = 1'000;
inline constexpr uint32_t kProbeFailuresAtOnceMax = 2'000;

// Evidence of one logical core's device clocks: executions in progress, and spans without their
// stops; beyond: the oldest are forgotten. The other three limit the evidence kept of a capture for
// each of its physical cores. Beyond: only every second execution or sync point is kept, then every
// fourth, and so on.
inline constexpr size_t kDeviceExecutionsOpenMax = 256;
inline constexpr size_t kDeviceSpansOpenMax = 4'096;
inline constexpr size_t kDeviceCoresMax = 8;
inline constexpr size_t kDeviceExecutionsMax = 65'536;
inline constexpr size_t kDeviceSyncPointsMax = 65'536;

// Stored models of a capture's clocks: one row for each machine and one for each device core.
// Beyond either limit they are not stored, and are fitted again each time they are needed.
inline constexpr size_t kClockModelRowsMax = size_t{1} << 20;
inline constexpr size_t kClockModelBytesMax = size_t{256} << 20;  // of all rows

// Check of the order of events on several instances: parts of collectives and barriers that are
// held of a capture. Beyond: only those of every second execution are kept, then every fourth, and
// so on. kOrderViolationsShownMax: the worst of each kind that are shown; the others are counted.
inline constexpr size_t kOrderEventsMax = size_t{1} << 20;
inline constexpr size_t kOrderViolationsShownMax = 16;

static_assert(kClockBatchBytesMax < kClockBacklogBytesMax, "a backlog holds any batch");

static_assert(kProbesPerSecondMax < kProbeFailuresPerSecondMax &&
              kProbesAtOnceMax < kProbeFailuresAtOnceMax);

// Aggregator: instances whose clock's bound is a time series of its own. Beyond: those with the
// best bounds are omitted and counted in neurontrace_aggregator_clock_bounds_left_out.
inline constexpr size_t kClockBoundSeriesMax = 2'048;

}  // namespace neurontrace::limits
