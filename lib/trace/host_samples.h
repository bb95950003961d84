// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

// What a stream of kind StreamKind::kHost holds: how busy one host's processors were and how much
// of its memory was in use while a capture ran. There is one such stream for each agent in a
// capture; its worker has instance_id and boot_id alone (pid 0), no core, no rank and no name.
//
// Every event has the phase kCounter, a timestamp and no other standard field; its values are
// attributes of the scope kData, in this order. What a reader finds in a store may be another
// producer's: none of it is to be taken for granted.
//
// The vendor's tables CpuUsage and HostMemUsage (schema 7.4.0) have the same numbers under the same
// names; of the vendor's JSON, cpu_util has {timestamp, duration, cpu_id, util} and mem_usage has
// {timestamp, duration, percent_usage, usage}.
namespace neurontrace {

// One processor, or their average, over one interval. The timestamp is the beginning of the
// interval, so that a counter drawn there holds until the next one. The interval is
// kHostSampleIntervalNs, except for the last one before the end of a capture, and for intervals in
// which the agent was delayed.
//   cpu_id        string  "0", "1", … as /proc/stat numbers them, or "average" over all of them
//   util_percent  double  0 to 100: the share of the interval in which it was not idle; waiting
//                         for a disk (iowait) is idle
//   duration_ns   uint    length of the interval by CLOCK_MONOTONIC
inline constexpr std::string_view kHostCpuEventType = "host_cpu";
inline constexpr std::string_view kHostCpuIdKey = "cpu_id";
inline constexpr std::string_view kHostCpuAverageId = "average";
inline constexpr std::string_view kHostUtilPercentKey = "util_percent";
inline constexpr std::string_view kHostDurationNsKey = "duration_ns";

// The host's memory at the moment of the timestamp, and at the end of each interval.
//   used_bytes    uint    MemTotal less MemAvailable of /proc/meminfo: what could not be given to
//                         a program without swapping
//   used_percent  double  0 to 100: used_bytes of total_bytes
//   total_bytes   uint    MemTotal
inline constexpr std::string_view kHostMemoryEventType = "host_memory";
inline constexpr std::string_view kHostUsedBytesKey = "used_bytes";
inline constexpr std::string_view kHostUsedPercentKey = "used_percent";
inline constexpr std::string_view kHostTotalBytesKey = "total_bytes";

inline constexpr uint64_t kHostSampleIntervalNs = 1'000'000'000;

}  // namespace neurontrace
