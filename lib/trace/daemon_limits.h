// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Limits of what agent and aggregator report about themselves: logs, the HTTP port and the page
// /statusz.
namespace neurontrace::limits {

// Log lines of one kind, which are equal except for their digits: this many at once, then one a
// second. Further ones are suppressed, and the next line reports how many.
inline constexpr uint32_t kLogLinesOfKindAtOnce = 10;
// Kinds that are distinguished. Beyond: a new kind takes the place of an older one, which starts
// over.
inline constexpr size_t kLogKinds = 1'024;
// All lines together, of any kind: further ones are suppressed too.
inline constexpr uint32_t kLogLinesAtOnce = 1'000;
inline constexpr uint32_t kLogLinesPerSecond = 100;
// A line. Longer: cut.
inline constexpr size_t kLogLineBytesMax = 16u << 10;
// The newest warnings and errors, which /statusz shows; older ones are dropped.
inline constexpr size_t kLogWarningsKept = 50;

// Connections of the HTTP port. Beyond: the oldest one is closed.
inline constexpr size_t kHealthConnectionsMax = 96;
// Timeouts for receiving a request's head and its body, for the client to read the answer, and for
// reading and dropping further input after it. Later: closed.
inline constexpr int kHealthRequestMsMax = 2'000;
inline constexpr int kHealthAnswerMsMax = 10'000;
inline constexpr int kHealthLingerMsMax = 1'000;
// A request's head and its body. Larger: refused, unread.
inline constexpr size_t kHealthHeadBytesMax = 8u << 10;
inline constexpr size_t kHealthBodyBytesMax = 64u << 10;
// Threads that produce answers, and how many of them may wait for the rest of the process at once.
// Further requests that need to wait: 503.
inline constexpr int kHealthThreads = 8;
inline constexpr int kHealthWaitingMax = 4;
static_assert(kHealthWaitingMax < kHealthThreads, "probes and metrics always find a thread");

// A sequence that has run no task for longer is stuck: /healthz reports it, and a restart repairs
// it. Far above the delays that a slow disk causes.
inline constexpr uint64_t kSequenceStuckNs = 120'000'000'000;

// Rows of one table of /statusz, and rows of one metric in its table of numbers. The code defines
// few metrics, so only their label values need a limit. Further rows are counted.
inline constexpr size_t kStatusRowsMax = 256;
inline constexpr size_t kStatusMetricRowsMax = 8;
// A cell. Longer: cut.
inline constexpr size_t kStatusCellBytesMax = 512;

// Files of options. Beyond a limit: refused, with the reason.
inline constexpr size_t kConfigFileBytesMax = 1 << 20;
inline constexpr size_t kConfigKeyBytesMax = 200;        // of a key that a message quotes
inline constexpr size_t kConfigMessageBytesMax = 1'000;  // of a message about an option's value

}  // namespace neurontrace::limits
