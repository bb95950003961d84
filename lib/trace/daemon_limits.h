// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Limits of the logs and the page /statusz of agent and aggregator.
namespace neurontrace::limits {

// Log lines of one kind, which are equal but for their digits: so many at once, then one a second.
// Further ones are left out, and the next one says how many.
inline constexpr uint32_t kLogLinesOfKindAtOnce = 10;
// Distinct kinds. Beyond, the count of a kind that shares a place with a newer one restarts.
inline constexpr size_t kLogKinds = 1'024;
// All lines together, whatever their kind. Further ones are left out too.
inline constexpr uint32_t kLogLinesAtOnce = 1'000;
inline constexpr uint32_t kLogLinesPerSecond = 100;
// A line. Longer: cut.
inline constexpr size_t kLogLineBytesMax = 16u << 10;
// Of the warnings and errors that /statusz shows, the newest; older ones go.
inline constexpr size_t kLogWarningsKept = 50;

// Of the HTTP port: connections. Beyond: the oldest one is closed.
inline constexpr size_t kHealthConnectionsMax = 96;
// How long a request may take to come, its head and its body each, and its answer to be taken, and
// what was sent besides. Later: closed.
inline constexpr int kHealthRequestMsMax = 2'000;
inline constexpr int kHealthAnswerMsMax = 10'000;
inline constexpr int kHealthLingerMsMax = 1'000;
// A request's head and its body. Larger: refused, unread.
inline constexpr size_t kHealthHeadBytesMax = 8u << 10;
inline constexpr size_t kHealthBodyBytesMax = 64u << 10;
// Threads that make answers, and how many of these may wait for the rest of the process at once.
// Further questions that need it: 503.
inline constexpr int kHealthThreads = 8;
inline constexpr int kHealthWaitingMax = 4;
static_assert(kHealthWaitingMax < kHealthThreads, "probes and metrics always find a thread");

// A sequence that has not run for longer is stuck: /healthz reports it, and a restart fixes it. Far
// above the waits for a slow disk.
inline constexpr uint64_t kSequenceStuckNs = 120'000'000'000;

// Rows of one table of /statusz, and of one metric in its table of numbers; further ones are
// counted.
inline constexpr size_t kStatusRowsMax = 256;
inline constexpr size_t kStatusMetricRowsMax = 8;
// A cell. Longer: cut.
inline constexpr size_t kStatusCellBytesMax = 512;

// Files of options. What is over them is refused, with what is wrong.
inline constexpr size_t kConfigFileBytesMax = 1 << 20;
inline constexpr size_t kConfigKeyBytesMax = 200;      // of a key that is quoted in a message
inline constexpr size_t kConfigWordsBytesMax = 1'000;  // of the message about an option's value

}  // namespace neurontrace::limits
