// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The limits that several folders share, with the policy at each. Files named *_limits.h beside
// this one have those of one subject. The counters are described in docs/operator/metrics.md, and
// docs/operator/limits.md lists all limits. The limits of the libraries inside a worker process are
// in tap/buffer_format.h, tap/agent_protocol.h, annotate/annotation_format.h and
// annotate/name_table.h.
namespace neurontrace::limits {

// One document of nrt_sys_trace_fetch_events. Larger: refused, counted as a decode loss.
inline constexpr size_t kFetchDocumentBytesMax = size_t{64} << 20;

// Chunks. A builder closes a chunk when it reaches the target. A single event that does not fit
// into a chunk is refused and counted as a decode loss. A received chunk beyond a maximum is
// refused for good (RefusalCode LIMIT).
inline constexpr uint32_t kChunkEventsMax = 8192;
inline constexpr uint32_t kChunkEventsTarget = 4096;
inline constexpr size_t kChunkBytesTarget = 128u << 10;    // compressed
inline constexpr size_t kChunkBytesMax = size_t{4} << 20;  // compressed
inline constexpr size_t kChunkColumnsBytesMax = size_t{64} << 20;
inline constexpr size_t kChunkHeaderBytesMax =
    256u << 10;  // its header, serialized: identity, evidence, losses and suspensions, all bounded
inline constexpr uint64_t kChunkAgeMaxNs = 500'000'000;  // an open chunk is closed at this age
inline constexpr uint32_t kChunkStringsMax = 65'536;
inline constexpr uint32_t kChunkShapesMax = 4'096;
inline constexpr size_t kStringBytesMax =
    64u << 10;  // one string or raw JSON value; longer: the event is a decode loss
inline constexpr uint32_t kAttributesPerEventMax = 64;
inline constexpr uint32_t kLossesPerChunkMax = 64;       // further ones are summed into the last
inline constexpr uint32_t kSuspensionsPerChunkMax = 16;  // the shortest beyond it is not sent
inline constexpr uint32_t kRankEvidencePerStreamMax = 16;
inline constexpr uint32_t kRemarksPerStreamMax = 24;  // kinds of remarks
inline constexpr size_t kRemarkDetailsMax = 16;       // of one remark; it counts all of them
inline constexpr size_t kRemarkDetailBytesMax = 256;  // longer: cut
inline constexpr size_t kDetailBytesMax =
    1024;  // free text in losses, evidence and states; longer: cut
inline constexpr size_t kIdentityStringBytesMax =
    512;  // instance id, agent id, container id, file name …

// Cores, streams, workers, agents and captures that are accepted. Beyond: refused with a message,
// counted.
inline constexpr uint32_t kCoresPerWorkerMax = 256;
inline constexpr uint32_t kStreamsPerWorkerMax =
    kCoresPerWorkerMax + 1;  // and one for events without a core
inline constexpr uint32_t kWorkersPerAgentMax = 1'024;
inline constexpr uint32_t kAgentsMax = 16'384;
inline constexpr uint32_t kStreamsPerCaptureMax = 1u << 20;
inline constexpr uint32_t kCapturesRunningMax = 16;
// Connections at an agent's socket. One user may hold as many of them, and of its workers, as are
// still free: half if no other user holds any, otherwise half of the rest.
inline constexpr uint32_t kTapConnectionsMax = 1'024;
// Warnings, event types and job facts that are reported for one worker. Further ones are omitted.
inline constexpr uint32_t kWorkerWarningsMax = 64;
inline constexpr uint32_t kWorkerEventTypesMax = 512;
inline constexpr uint32_t kWorkerJobFactsMax = 64;

// The core index of events without a core.
inline constexpr uint32_t kNoNcIdx = 0xffffffffu;

// Agent: the longest time until a buffer is full that is reported.
inline constexpr uint64_t kHeadroomMaxNs = 86'400'000'000'000;
// Agent: canaries of a live stream. Only one is in transit at a time. If the last acknowledged one
// is older than kCanaryAgeMaxNs, the agent is not ready.
inline constexpr uint64_t kCanaryFirstNs = 2'000'000'000;  // after the beginning of the stream
inline constexpr uint64_t kCanaryIntervalNs = 60'000'000'000;
inline constexpr uint64_t kCanaryAgeMaxNs = 180'000'000'000;
static_assert(kCanaryAgeMaxNs > 2 * kCanaryIntervalNs);  // one may be lost or late
// Memory of gRPC for all of an aggregator's connections. Beyond: it reduces their flow-control
// windows, and ends calls if that is not enough.
inline constexpr size_t kGrpcBytesMax = size_t{256} << 20;
// Memory of a store's write that is reused for the next one; memory beyond that is freed.
inline constexpr size_t kStoreBatchBytesKept = size_t{16} << 20;
// Streams whose canaries an aggregator watches. The age of further ones is not reported, and
// neurontrace_aggregator_streams_live does not count them.
inline constexpr size_t kCanaryStreamsMax = 65'536;
// Agent: chunks sent and not yet acknowledged; beyond: sending waits.
inline constexpr uint32_t kUnackedChunksMax = 256;
// Agent: bytes of encoded chunks in memory. Beyond: sources are not read, and their own buffers
// keep the events.
inline constexpr size_t kAgentQueueBytesMax = size_t{64} << 20;

// Agent: bytes of chunks sent and not yet acknowledged; beyond: sending waits.
inline constexpr size_t kUnackedBytesMax = size_t{32} << 20;

// The agent's spool. At its size, or at a capture's share of it, the configured policy applies:
// drop-oldest or refuse-newest. A segment has at least one record, whatever its size.
inline constexpr uint64_t kSpoolBytesDefault = uint64_t{4} << 30;
inline constexpr uint64_t kSpoolBytesMin = uint64_t{1} << 20;
inline constexpr uint64_t kSpoolSegmentBytesMax = uint64_t{64} << 20;
inline constexpr uint64_t kSpoolSegmentBytesMin = uint64_t{64} << 10;
inline constexpr uint64_t kSpoolSegmentsPerQuota = 8;  // a quota is at least this many segments
// Chunks in the spool, as each costs some memory too. Beyond: the same as if the spool were full.
inline constexpr uint64_t kSpoolChunksMax = 500'000;
// Bytes of the spool that are written with one sync.
inline constexpr size_t kSpoolBatchBytesMax = size_t{8} << 20;
// Captures with chunks in the spool. Beyond: chunks stay in memory.
inline constexpr size_t kSpoolCapturesMax = 1'024;
// Entries of one directory of the spool. Beyond: the agent cannot open the spool.
inline constexpr size_t kSpoolFilesPerDirectoryMax = 1u << 20;
// Bytes of a capture's file of cursors. Beyond: it is not used, and its chunks are sent again.
inline constexpr size_t kSpoolCursorBytesMax = size_t{256} << 20;
// Running captures that the spool records, the bytes of the file that records them, and the streams
// of each. Beyond: an agent that starts waits for its aggregator before it reads a tap.
inline constexpr size_t kSpoolRunningMax = 64;
inline constexpr size_t kSpoolRunningBytesMax = size_t{1} << 20;
inline constexpr size_t kSpoolRunningStreamsMax = 8'192;
// How often the agent tries at its start, a second apart, to read a file of the spool that the disk
// does not return. Beyond: the file is skipped, and reported as a loss.
inline constexpr uint32_t kSpoolReadTriesMax = 10;
// Damaged files that are kept for inspection. Beyond: they are removed at once, and counted.
inline constexpr uint64_t kSpoolQuarantineBytesMax = uint64_t{64} << 20;
inline constexpr size_t kSpoolQuarantineFilesMax = 1'000;

// Events per core in the runtime's rings that a capture may ask for. 65,536 events take 7.9 MB a
// core and last 0.7 s at the highest plausible rate of 85,000 events/s.
inline constexpr uint64_t kRingEventsPerCoreDefault = 65'536;
inline constexpr uint64_t kRingEventsPerCoreMin = 1'024;
inline constexpr uint64_t kRingEventsPerCoreMax = uint64_t{1} << 22;

// Items of one selection, labels of one capture, and rules of triggers. Beyond: refused.
inline constexpr uint32_t kSelectionItemsMax = 4'096;
inline constexpr uint32_t kCaptureLabelsMax = 64;
inline constexpr uint32_t kTriggerRulesMax = 256;

// Arming: how long answers of agents are awaited, and the least and the longest time from the order
// to begin until the beginning. A worker that has not answered by then joins late.
inline constexpr uint64_t kArmPatienceNs = 2'000'000'000;
inline constexpr uint64_t kBeginLeadMinNs = 20'000'000;
inline constexpr uint64_t kBeginLeadMaxNs = 500'000'000;

// Framework trace files.
inline constexpr size_t kFrameworkFileBytesMax = size_t{8} << 30;  // uncompressed
inline constexpr uint32_t kFrameworkFilesPerCaptureMax = 4'096;
inline constexpr uint32_t kFrameworkDirectoryEntriesMax =
    100'000;  // looked at in a watched directory
inline constexpr size_t kFrameworkEventBytesMax =
    size_t{1} << 20;  // one element of traceEvents; longer: passed over, a decode loss

// Host samples. With more processors none of the host are sampled, which is counted. Bytes of
// /proc/stat and /proc/meminfo beyond the limit are not read.
inline constexpr size_t kHostCpusMax = 8'192;
inline constexpr size_t kHostProcFileBytesMax = size_t{1} << 20;

// gRPC messages in either direction; an envelope must fit.
inline constexpr size_t kGrpcMessageBytesMax = size_t{8} << 20;

// Aggregator: bytes of chunks that were received and are not yet durable, over all agents. Beyond:
// nothing more is read, which reaches the agents as flow control.
inline constexpr size_t kIngestBytesInFlightMax = size_t{128} << 20;

// Aggregator: streams that one Upload call may number, and answers queued for an agent that does
// not read them. Beyond: the call is ended; and nothing is read until the agent has read some.
inline constexpr uint32_t kUploadStreamsMax = 1u << 20;
inline constexpr size_t kUploadAnswersMax = 4'096;
// Aggregator: orders queued for an agent that does not read them. Beyond: the call is ended; the
// agent receives the complete state when it connects again.
inline constexpr size_t kAgentOrdersMax = 1'024;

// Aggregator: how long a stopping capture waits for an agent that is not connected, and for one
// that is connected and reports nothing more about it. Then the capture ends without that agent,
// incomplete.
inline constexpr uint64_t kAgentReturnMaxNs = 10'000'000'000;
inline constexpr uint64_t kAgentSilenceMaxNs = 60'000'000'000;
// Aggregator: worker statuses and warnings in one capture's record. Further ones are counted in the
// last warning.
inline constexpr uint32_t kCaptureWorkersMax = 65'536;
inline constexpr uint32_t kCaptureWarningsMax = 64;
// Aggregator: workers without a part in a capture that its record names. Further ones are counted
// in a warning.
inline constexpr uint32_t kCaptureNonParticipantsMax = 4'096;
// Aggregator: an agent that disconnected less than this before a capture began is reported as
// missing from it.
inline constexpr uint64_t kAgentMissedForNs = 3'600'000'000'000;
// Aggregator: how long an ended capture accepts what an agent sends late, and the number of such
// captures for one agent and in all. Beyond: the oldest one no longer waits.
inline constexpr uint64_t kLateAgentMaxNs = 7ull * 24 * 3'600'000'000'000;
inline constexpr uint32_t kLateCapturesPerAgentMax = 16;
inline constexpr uint32_t kLateCapturesMax = 256;
// Aggregator: losses that one stream's record keeps one by one. Beyond: the shortest ones are
// removed from the list; the sums still contain them.
inline constexpr uint32_t kGapsPerStreamMax = 32;
// Aggregator: suspensions that one stream's record keeps. Beyond: the shortest one is removed,
// except the latest; the count still contains it.
inline constexpr uint32_t kSuspensionsPerStreamMax = 32;
// Certificates: gaps shown for one worker, and ranges of ranks named for one job. Further ones are
// counted.
inline constexpr uint32_t kCertificateGapsMax = 8;
inline constexpr uint32_t kCertificateRankRangesMax = 64;

// Export: bytes of one message to the CLI.
inline constexpr size_t kExportMessageBytes = 1u << 20;
// Files of one export, and bytes of a file's name in it.
inline constexpr size_t kExportFilesMax = 65'536;
inline constexpr size_t kExportNameBytesMax = 512;
// Delivery: files in one manifest, and bytes of a manifest, beyond which it is not read. A delivery
// that would need more fails with RESOURCE_EXHAUSTED.
inline constexpr size_t kDeliveredFilesMax = 200'000;
inline constexpr size_t kManifestBytesMax = 256u << 20;

static_assert(kTapConnectionsMax >= kWorkersPerAgentMax, "each worker has its connection");
static_assert(kWorkersPerAgentMax / 2 >= kCoresPerWorkerMax,
              "a user may have a worker on each core of a machine");
static_assert(kChunkEventsTarget <= kChunkEventsMax);
static_assert(kChunkBytesTarget <= kChunkBytesMax);
static_assert(kChunkBytesMax < kGrpcMessageBytesMax, "an envelope must fit into a message");
static_assert(kStringBytesMax < kChunkBytesMax, "a string must fit into a chunk");
static_assert(kStringBytesMax < kChunkColumnsBytesMax);
static_assert(kAttributesPerEventMax <= kChunkStringsMax,
              "the keys of one event must fit into a string table");
static_assert(kExportMessageBytes < kGrpcMessageBytesMax);
static_assert(kChunkBytesMax + kChunkHeaderBytesMax <= kSpoolBatchBytesMax,
              "a batch must hold any chunk");
static_assert(kSpoolSegmentBytesMin * kSpoolSegmentsPerQuota <= kSpoolBytesMin);
static_assert(kSpoolSegmentBytesMax + kSpoolBatchBytesMax <= 0xffffffffu,
              "places in a segment are 32-bit numbers");
static_assert(kUnackedBytesMax <= kAgentQueueBytesMax);
static_assert(kRingEventsPerCoreMin <= kRingEventsPerCoreDefault &&
              kRingEventsPerCoreDefault <= kRingEventsPerCoreMax);

}  // namespace neurontrace::limits
