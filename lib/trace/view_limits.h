// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Limits of what the page asks for (aggregator/view). web_limits.h beside this one
// has those of its connections. The counters are described in docs/operator/metrics.md.
namespace neurontrace::limits {

// Items of one answer about spans. Beyond, items are merged at half the resolution, as often as
// necessary, and the answer says so.
inline constexpr size_t kViewItemsMax = 200'000;
// Rows of one answer. Events of further rows are counted, and the answer says so.
inline constexpr size_t kViewRowsMax = 4'096;
// Distinct names of one answer. Further ones share the last number, "(other)".
inline constexpr size_t kViewNamesMax = 65'535;
// Levels of nesting on one row. Deeper spans are drawn on the last level.
inline constexpr size_t kViewDepthMax = 64;
// Pixels that an answer distinguishes. More: refused with INVALID_ARGUMENT.
inline constexpr uint32_t kViewPixelsMax = 16'384;
// Streams that one question may name. More: refused with INVALID_ARGUMENT.
inline constexpr size_t kViewStreamsMax = 16'384;
// Chunks that one question reads. Beyond, the answer covers what was read and says so. Lists of
// events and hits read one of each stream, up to kViewStreamsMax, even if these are more.
inline constexpr uint64_t kViewChunksMax = 8'192;
// Bytes of a search. Longer: refused with INVALID_ARGUMENT.
inline constexpr size_t kViewQueryBytesMax = 1'024;
// Events that one answer lists with their attributes, and bytes of that list. Beyond: the answer
// has the cursor of the next one.
inline constexpr size_t kViewEventsMax = 1'000;
inline constexpr size_t kViewEventBytesMax = 4u << 20;
// Hits that one search lists. Beyond they are only counted.
inline constexpr size_t kViewHitsMax = 10'000;
// Links of one event that an answer lists. Beyond: counted in the answer.
inline constexpr size_t kViewLinksMax = 64;
// How far before and after an event links are looked for, and how long an event is looked at. The
// answer has the window.
inline constexpr uint64_t kViewLinkReachNs = 1'000'000'000;
inline constexpr uint64_t kViewLinkLengthNs = 10'000'000'000;
// The same for the other ranks of a collective.
inline constexpr uint64_t kViewLinkCollectiveReachNs = 200'000'000;
// Events that a search for links keeps. Links to further ones are missing, and the answer says so.
inline constexpr size_t kViewLinkNodesMax = 200'000;
// Events of one chain of dependencies, its length, and how many links of one event it follows.
// Beyond, the chain ends and says so; more than the latter two are refused with INVALID_ARGUMENT.
inline constexpr size_t kViewChainEventsMax = 64;
inline constexpr uint32_t kViewChainDepthMax = 32;
inline constexpr uint32_t kViewChainBreadthMax = 16;
// Names or ranks that a summary distinguishes. Further ones share one line, "(other)".
inline constexpr size_t kViewSummaryRowsMax = 4'096;
// Columns of a heat map, and its lines of pixels. More: refused with INVALID_ARGUMENT.
inline constexpr uint32_t kViewColumnsMax = 4'096;
inline constexpr uint32_t kViewHeatLinesMax = 16'384;
// Cells of a heat map, which are its streams times its columns. Beyond: it has fewer columns, and
// the answer has their number.
inline constexpr size_t kViewHeatCellsMax = 10'485'760;
// Steps of frameworks that one heat map keeps. Further ones are counted in the answer.
inline constexpr size_t kViewFrameworkStepsMax = 1'048'576;
// Questions that are answered at once, in total and of one caller where callers have names. Further
// ones are refused with RESOURCE_EXHAUSTED, counted; the page asks again.
inline constexpr size_t kViewsAtOnceMax = 16;
inline constexpr size_t kViewsOfCallerMax = 8;
// Chunks of a window that are read one by one. Beyond, digests take their place where they can; a
// window without digests is read up to kViewChunksMax.
inline constexpr uint64_t kViewExactChunksMax = 400;
// Items of one digest. Beyond, items are merged at half the resolution, as often as necessary.
inline constexpr size_t kDigestItemsMax = 32'768;
// Stretches of time that a digest of level 0 distinguishes for each chunk, at least.
inline constexpr uint64_t kDigestBinsOfChunk = 128;
// Runs of bins that the sums of one digest have for each measure. Beyond, bins are merged at half
// the resolution, as often as necessary.
inline constexpr size_t kDigestRunsMax = 4'096;
// Names that the sums of one digest distinguish. Further ones share "(other)"; then searches and
// summaries read the digest's chunks.
inline constexpr size_t kDigestSumNamesMax = 4'096;
// Chunks behind a digest in which the ends of its spans are searched for. A span that is still open
// then has no end in the digest, as it has none in an export.
inline constexpr uint64_t kDigestHorizonChunks = 512;
// Spans of a stream that end in later chunks. Beyond, the stream gets no further digests, counted,
// and is read chunk by chunk.
inline constexpr size_t kDigestPendingMax = 16'384;
// Bytes that must be free on the disk of the store before digests are made: they can be made later,
// events cannot.
inline constexpr uint64_t kDigestFreeBytesMin = uint64_t{2} << 30;
// Captures whose description and clocks are kept for further questions. Beyond: the one that was
// not asked about for the longest time is dropped, and read again when it is asked about.
inline constexpr size_t kViewCapturesMax = 8;
// Bytes of one message of an answer. A longer answer has several.
inline constexpr size_t kViewPartBytes = 1u << 20;

}  // namespace neurontrace::limits
