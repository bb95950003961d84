// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/trace/limits.h"

// Limits of triggers: of the values of a rule, and of the state of watched rules. The number of
// rules is limits::kTriggerRulesMax.
namespace neurontrace::limits {

// A rule file. Beyond any of these: the whole file is refused, with the reason.
inline constexpr size_t kTriggerFileBytesMax = 256u << 10;
inline constexpr size_t kTriggerNameBytesMax = 64;

// What a rule may ask for; outside: refused.
inline constexpr double kTriggerTimesMedianMin = 1.1;
inline constexpr double kTriggerTimesMedianMax = 1'000;
inline constexpr uint64_t kTriggerSilenceMinNs = 500'000'000;
inline constexpr uint64_t kTriggerSilenceMaxNs = 86'400'000'000'000;
inline constexpr uint64_t kTriggerCoolDownMinNs = 1'000'000'000;
inline constexpr uint64_t kTriggerCoolDownMaxNs = 7 * 86'400'000'000'000;
inline constexpr uint32_t kTriggerPerHourMax = 60;
inline constexpr uint64_t kTriggerRecordMinNs = 100'000'000;
inline constexpr uint64_t kTriggerRecordMaxNs = 3'600'000'000'000;

// Agent: how often one rule may fire of one worker; more often: suppressed, and counted.
inline constexpr uint64_t kTriggerReportIntervalNs = 1'000'000'000;
// Agent: pairs of rule and worker that may fire within that time. Beyond: suppressed, and counted.
inline constexpr size_t kTriggerReportsKeptMax = 4'096;
// Agent: executions of one core whose stop is awaited. Beyond: the oldest is forgotten.
inline constexpr size_t kTriggerOpenExecutionsMax = 16;
// Agent: how old, since it was fetched, what it reads may be; older: not judged, and counted.
inline constexpr uint64_t kTriggerStaleNs = 30'000'000'000;
// The body of POST /triggers/NAME. Beyond: 413.
inline constexpr size_t kTriggerBodyBytesMax = 4'096;
// Aggregator: jobs with a known time of the last firing of a rule. Beyond: those whose cool-down is
// over are forgotten; if there are none, the trigger is suppressed, and counted.
inline constexpr size_t kTriggerJobsMax = 1'024;
// Aggregator: workers in captures whose silence is watched. Beyond: not watched, and counted.
inline constexpr size_t kTriggerWorkersWatchedMax = 65'536;
// Aggregator: distinct workers counted into one incident. Beyond: "or more".
inline constexpr size_t kTriggerIncidentWorkersMax = 4'096;

static_assert(kTriggerNameBytesMax <= kIdentityStringBytesMax);

}  // namespace neurontrace::limits
