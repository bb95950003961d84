// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Limits of stacks (agent/stacks, aggregator/stacks). docs/operator/stacks.md describes them.
namespace neurontrace::limits {

// Agent: how long the program may take for one worker, and the bytes that it may print. Beyond: it
// is killed, and the worker's outcome says so. Of what it prints on stderr the first bytes are
// read, and the rest is discarded.
inline constexpr uint64_t kStacksProgramNs = 10'000'000'000;
inline constexpr size_t kStacksProgramBytesMax = size_t{4} << 20;
inline constexpr size_t kStacksErrorBytesMax = 16'384;
// Workers of one collection. The aggregator refuses to ask for more; an agent ignores the rest.
inline constexpr size_t kStacksWorkersMax = 256;
// Agent: workers that wait for their turn, of all collections. Beyond: answered as failed.
inline constexpr size_t kStacksQueueMax = 512;
// Aggregator: how long an agent may take for a collection. Workers without an answer by then are
// reported as such; a later answer is counted and ignored.
inline constexpr uint64_t kStacksAnswerNs = 90'000'000'000;

// One worker: threads, frames of a thread (of a deeper stack the innermost ones are kept beside the
// outermost), bytes of a name, and bytes of all. Beyond: cut or left out, and counted.
inline constexpr size_t kStackThreadsMax = 256;
inline constexpr size_t kStackFramesMax = 128;
inline constexpr size_t kStackInnermostFrames = 48;
inline constexpr size_t kStackNameBytesMax = 160;
inline constexpr size_t kStackBytesMax = 256 << 10;
inline constexpr size_t kKernelThreadsMax = 256;
// Nesting of what the program prints. Beyond: malformed.
inline constexpr size_t kStacksJsonDepthMax = 16;

// Merged stacks: nodes of a report (further ones are left out and counted), lines of the short
// answer, and frames that one of its lines names.
inline constexpr size_t kStackNodesMax = 20'000;
inline constexpr size_t kStackLinesMax = 12;
inline constexpr size_t kStackLineFramesMax = 12;
// Aggregator: collections that wait for agents at once (beyond: refused), reports kept in memory
// (beyond: the oldest is read from the store again).
inline constexpr size_t kStacksCollectionsMax = 16;
inline constexpr size_t kStacksReportsMax = 64;
// Jobs of a capture whose reports an answer has, and the bytes of a stored report that is read.
inline constexpr size_t kStacksReportsShown = 8;
inline constexpr size_t kStacksReportBytesMax = size_t{8} << 20;
// Peers of a hang's suspects whose stacks are taken beside theirs.
inline constexpr size_t kStacksPeers = 7;

static_assert(kStackInnermostFrames < kStackFramesMax);

}  // namespace neurontrace::limits
