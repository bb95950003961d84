// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/trace/limits.h"

// Limits of triggers: of rules, and of the state that is kept to watch them.
// limits::kTriggerRulesMax is the number of rules.
namespace neurontrace::limits {

// A rule file. Beyond any of these: the whole file is refused, with a message.
inline constexpr size_t kTriggerFileBytesMax = 256u << 10;
inline constexpr size_t kTriggerNameBytesMax = 64;

// Ranges of the values in a rule; outside: refused.
inline constexpr double kTriggerTimesMedianMin = 1.1;
inline constexpr double kTriggerTimesMedianMax = 1'000;
inline constexpr uint64_t kTriggerSilenceMinNs = 500'000'000;
inline constexpr uint64_t kTriggerSilenceMaxNs = 86'400'000'000'000;
inline constexpr uint64_t kTriggerCoolDownMinNs = 1'000'000'000;
inline constexpr uint64_t kTriggerCoolDownMaxNs = 7 * 86'400'000'000'000;
inline constexpr uint32_t kTriggerPerHourMax = 60;
inline constexpr uint64_t kTriggerRecordMinNs = 100'000'000;
inline constexpr uint64_t kTriggerRecordMaxNs = 3'600'000'000'000;

// kVerdict: bytes of the list of kinds, and peers. Beyond: refused.
inline constexpr size_t kTriggerVerdictsBytesMax = 256;
inline constexpr uint32_t kTriggerPeersMax = 64;

// Agent: least time between two firings of one rule for one worker; more often: suppressed, and
// counted.
inline constexpr uint64_t kTriggerReportIntervalNs = 1'000'000'000;
// Agent: pairs of rule and worker for which the time of the last firing is remembered. Beyond:
// suppressed, and counted.
inline constexpr size_t kTriggerReportsKeptMax = 4'096;
// Agent: executions of one core whose stop is awaited. Beyond: the oldest is forgotten.
inline constexpr size_t kTriggerOpenExecutionsMax = 16;
// Agent: the age of events, since they were fetched, up to which rules are applied; older: ignored,
// and counted.
inline constexpr uint64_t kTriggerStaleNs = 30'000'000'000;
// The body of POST /triggers/NAME. Beyond: 413.
inline constexpr size_t kTriggerBodyBytesMax = 4'096;
// Aggregator: jobs for which the time of a rule's last firing is remembered. Beyond: jobs whose
// cool-down is over are forgotten; if there is none, the firing is suppressed, and counted.
inline constexpr size_t kTriggerJobsMax = 1'024;
// Aggregator: workers in captures whose silence is watched. Beyond: not watched, and counted.
inline constexpr size_t kTriggerWorkersWatchedMax = 65'536;
// Aggregator: distinct workers counted into one incident. Beyond: "or more".
inline constexpr size_t kTriggerIncidentWorkersMax = 4'096;

static_assert(kTriggerNameBytesMax <= kIdentityStringBytesMax);

}  // namespace neurontrace::limits
