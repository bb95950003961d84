// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/trace/limits.h"

// Limits of verdicts while the fleet runs (aggregator/watch). docs/operator/watch.md describes
// them.
namespace neurontrace::limits {

// What `neurontrace watch on` asks for without options: how long events are kept, and the share of
// one processor that recording may take of each worker.
inline constexpr uint64_t kWatchKeepNs = 600'000'000'000;
inline constexpr uint32_t kWatchCorePpm = 20'000;

// Chunks of watches that wait to be read, and their bytes, compressed. Beyond: the newest is
// dropped and counted, and its core is refused in that window.
inline constexpr size_t kWatchQueueChunksMax = 32'768;
inline constexpr size_t kWatchQueueBytesMax = 16u << 20;
// Cores of all watches, and their jobs. Beyond: not judged, and counted.
inline constexpr size_t kWatchCoresMax = 10'240;
inline constexpr size_t kWatchJobsMax = 256;
// Spans of one core that have started and not ended. Beyond: the oldest is forgotten, and counted.
inline constexpr size_t kWatchOpenSpansMax = 32;
// Events of one core that wait for earlier ones of its next chunk, and for how long. Beyond: the
// earliest is passed on.
inline constexpr size_t kWatchHeldEventsMax = 32;
inline constexpr uint64_t kWatchHoldNs = 500'000'000;
// Calls of one class in a row (allocations and frees, or tensor reads and writes) that are passed
// on as one span of their total length. A row that lasts longer becomes several.
inline constexpr uint64_t kWatchJoinNs = 50'000'000;
// Names of models of one core. Beyond: the model is known by its number.
inline constexpr size_t kWatchModelsMax = 8;
// Numbers of groups that are compared to find out what they mean. Beyond: not compared.
inline constexpr size_t kWatchGroupIdsMax = 16'384;
// Verdicts of one job that are followed. Beyond: neither reported nor counted, and the report says
// so.
inline constexpr size_t kWatchVerdictsMax = 64;

// Cores that a verdict names beside its suspects, and suspects that it names, for the capture of a
// rule. Further ones are not recorded by it.
inline constexpr size_t kWatchPeersMax = 64;
inline constexpr size_t kWatchSuspectsMax = 256;

// The least time between two judgements, and between two looks at the fleet's workers. A judgement
// or a look that took long is followed by a pause of so many times that, up to the maximum.
inline constexpr uint64_t kWatchJudgeMinNs = 250'000'000;
inline constexpr uint64_t kWatchJudgeMaxNs = 1'000'000'000;
inline constexpr uint64_t kWatchJudgePause = 10;
inline constexpr uint64_t kWatchViewPause = 50;
// The length of the window that verdicts are made of.
inline constexpr uint64_t kWatchWindowNs = 30'000'000'000;
// A span that has been open for this long is shown to the rule.
inline constexpr uint64_t kWatchOpenAfterNs = 1'000'000'000;
// A worker's agent that was heard from within this time shows that the worker's stream is alive.
inline constexpr uint64_t kWatchAgentSeenNs = 5'000'000'000;
// A verdict begins when all judgements of this time have it, at least two, and ends when all of
// this time do not have it. A hang needs less, as nothing but time passes in it.
inline constexpr uint64_t kWatchBeginSlowNs = 1'000'000'000;
inline constexpr uint64_t kWatchBeginHangNs = 500'000'000;
inline constexpr uint64_t kWatchEndNs = 3'000'000'000;

static_assert(kWatchHoldNs >= kChunkAgeMaxNs, "events of two chunks in a row are put in order");

}  // namespace neurontrace::limits
