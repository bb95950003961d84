// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The limits that several folders share, with what happens at each; files named *_limits.h beside
// this one hold those of one subject. The counters are described in docs/operator/metrics.md. The
// tap's own limits, which a worker process carries, are in tap/buffer_format.h.
namespace neurontrace::limits {

// One document of nrt_sys_trace_fetch_events. Larger: refused, counted as a decode loss.
inline constexpr size_t kFetchDocumentBytesMax = size_t{64} << 20;

// Chunks. A builder closes a chunk when it reaches the target; what a single event cannot fit into
// is refused and counted as a decode loss; a received chunk beyond a maximum is refused for good
// (RefusalCode LIMIT).
inline constexpr uint32_t kChunkEventsMax = 8192;
inline constexpr uint32_t kChunkEventsTarget = 4096;
inline constexpr size_t kChunkBytesTarget = 128u << 10;    // compressed
inline constexpr size_t kChunkBytesMax = size_t{4} << 20;  // compressed
inline constexpr size_t kChunkColumnsBytesMax = size_t{64} << 20;
inline constexpr size_t kChunkHeaderBytesMax =
    256u << 10;  // its header, serialized: identity, evidence and losses, all bounded
inline constexpr uint64_t kChunkAgeMaxNs = 500'000'000;  // an open chunk is closed at this age
inline constexpr uint32_t kChunkStringsMax = 65'536;
inline constexpr uint32_t kChunkShapesMax = 4'096;
inline constexpr size_t kStringBytesMax =
    64u << 10;  // one string or raw JSON value; longer: the event is a decode loss
inline constexpr uint32_t kAttributesPerEventMax = 64;
inline constexpr uint32_t kLossesPerChunkMax = 64;  // further ones are summed into the last
inline constexpr uint32_t kRankEvidencePerStreamMax = 16;
inline constexpr uint32_t kRemarksPerStreamMax = 24;  // kinds of remarks
inline constexpr size_t kRemarkDetailsMax = 16;       // of one remark; it counts all of them
inline constexpr size_t kRemarkDetailBytesMax = 256;  // longer: cut
inline constexpr size_t kDetailBytesMax =
    1024;  // free text in losses, evidence and states; longer: cut
inline constexpr size_t kIdentityStringBytesMax =
    512;  // instance id, agent id, container id, file name …

// Who there may be. Beyond: refused with a message, counted.
inline constexpr uint32_t kCoresPerWorkerMax = 256;
inline constexpr uint32_t kStreamsPerWorkerMax =
    kCoresPerWorkerMax + 1;  // and one for events without a core
inline constexpr uint32_t kWorkersPerAgentMax = 1'024;
// Connections at an agent's socket. One user may hold as many of them, and of its workers, as are
// still free: half if nobody else holds any, else half of the rest.
inline constexpr uint32_t kTapConnectionsMax = 1'024;
inline constexpr uint32_t kWorkerWarningsMax = 64;     // further ones are not reported
inline constexpr uint32_t kWorkerEventTypesMax = 512;  // further ones are not reported
inline constexpr uint32_t kWorkerJobFactsMax = 64;     // further ones are not reported
inline constexpr uint32_t kAgentsMax = 16'384;
inline constexpr uint32_t kStreamsPerCaptureMax = 1u << 20;
inline constexpr uint32_t kCapturesRunningMax = 16;
inline constexpr uint32_t kNoNcIdx = 0xffffffffu;

// Agent: the longest that something is said to take until it is full.
inline constexpr uint64_t kHeadroomMaxNs = 86'400'000'000'000;
// Agent: canaries of a live stream. One under way at a time; older: the agent is not ready.
inline constexpr uint64_t kCanaryFirstNs = 2'000'000'000;  // after the stream's beginning
inline constexpr uint64_t kCanaryIntervalNs = 60'000'000'000;
inline constexpr uint64_t kCanaryAgeMaxNs = 180'000'000'000;
static_assert(kCanaryAgeMaxNs > 2 * kCanaryIntervalNs);  // one may be lost or late
// What gRPC may hold for all of an aggregator's connections. Beyond: it makes their windows
// smaller, and ends calls when that is not enough.
inline constexpr size_t kGrpcBytesMax = size_t{256} << 20;
// Memory of a store's write that is kept for the next one; what grew larger is given back.
inline constexpr size_t kStoreBatchBytesKept = size_t{16} << 20;
// Whose canaries an aggregator watches: the age of further ones is not reported, and
// neurontrace_aggregator_streams_live does not count them.
inline constexpr size_t kCanaryStreamsMax = 65'536;
// Agent: chunks sent and not yet acknowledged; beyond: sending waits.
inline constexpr uint32_t kUnackedChunksMax = 256;
// Agent: bytes of encoded chunks held in memory; beyond: sources are not read (they keep what they
// hold).
inline constexpr size_t kAgentQueueBytesMax = size_t{64} << 20;

// Agent: bytes of chunks sent and not yet acknowledged; beyond: sending waits.
inline constexpr size_t kUnackedBytesMax = size_t{32} << 20;

// Agent's spool. At its size, or a capture's share of it: drop-oldest or refuse-newest, as
// configured. A segment holds at least one record, whatever its size.
inline constexpr uint64_t kSpoolBytesDefault = uint64_t{4} << 30;
inline constexpr uint64_t kSpoolBytesMin = uint64_t{1} << 20;
inline constexpr uint64_t kSpoolSegmentBytesMax = uint64_t{64} << 20;
inline constexpr uint64_t kSpoolSegmentBytesMin = uint64_t{64} << 10;
inline constexpr uint64_t kSpoolSegmentsPerQuota = 8;  // a quota is at least so many segments
// Chunks in the spool, as each costs some memory too. At it: as if the spool were full.
inline constexpr uint64_t kSpoolChunksMax = 500'000;
inline constexpr size_t kSpoolBatchBytesMax = size_t{8} << 20;  // written with one sync
// Captures whose chunks lie in the spool. Beyond: chunks stay in memory.
inline constexpr size_t kSpoolCapturesMax = 1'024;
inline constexpr size_t kSpoolFilesPerDirectoryMax = 1u << 20;
inline constexpr size_t kSpoolCursorBytesMax = size_t{256} << 20;
// Captures that continue according to the spool, the bytes of the file that lists them, and the
// streams of one of them. Beyond: an agent that starts waits for its aggregator before it reads a
// tap.
inline constexpr size_t kSpoolRunningMax = 64;
inline constexpr size_t kSpoolRunningBytesMax = size_t{1} << 20;
inline constexpr size_t kSpoolRunningStreamsMax = 8'192;
// How often a file of the spool that the disk does not give is tried at the start, a second apart;
// beyond: it is passed over, and told as a loss.
inline constexpr uint32_t kSpoolReadTriesMax = 10;
// What is set aside for people to look at; beyond: it is removed at once, and counted.
inline constexpr uint64_t kSpoolQuarantineBytesMax = uint64_t{64} << 20;
inline constexpr size_t kSpoolQuarantineFilesMax = 1'000;

// Runtime rings that a capture asks for: events per core. 65,536 events are 7.9 MB a core and last
// 0.7 s at the highest plausible rate of 85,000 events/s.
inline constexpr uint64_t kRingEventsPerCoreDefault = 65'536;
inline constexpr uint64_t kRingEventsPerCoreMin = 1'024;
inline constexpr uint64_t kRingEventsPerCoreMax = uint64_t{1} << 22;

// What a capture may ask for: items of one selection, labels, and rules of triggers. Beyond:
// refused.
inline constexpr uint32_t kSelectionItemsMax = 4'096;
inline constexpr uint32_t kCaptureLabelsMax = 64;
inline constexpr uint32_t kTriggerRulesMax = 256;

// Arming: how long the answers of agents are waited for, and the least and the most time from the
// order to begin to the beginning. A worker that has not answered by then joins late.
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

// Host samples. More processors: none of the host are sampled, which is counted. The contents of
// /proc/stat and /proc/meminfo beyond are not read.
inline constexpr size_t kHostCpusMax = 8'192;
inline constexpr size_t kHostProcFileBytesMax = size_t{1} << 20;

// gRPC messages in either direction; an envelope must fit.
inline constexpr size_t kGrpcMessageBytesMax = size_t{8} << 20;

// Aggregator: chunks received and not yet durable, over all agents; beyond: nothing more is read,
// which the agents feel as flow control.
inline constexpr size_t kIngestBytesInFlightMax = size_t{128} << 20;

// Aggregator: streams that one Upload call may number, and answers that may wait for an agent which
// does not read them. Beyond: the call is ended, and nothing is read until some were taken.
inline constexpr uint32_t kUploadStreamsMax = 1u << 20;
inline constexpr size_t kUploadAnswersMax = 4'096;
// Aggregator: orders that wait for an agent which does not read them. Beyond: the call is ended;
// the agent learns all of it when it connects again.
inline constexpr size_t kAgentOrdersMax = 1'024;

// Aggregator: how long a capture that is stopping waits for an agent that is not connected, and for
// a connected agent that does not report about it. Then it ends without that agent, incomplete.
inline constexpr uint64_t kAgentReturnMaxNs = 10'000'000'000;
inline constexpr uint64_t kAgentSilenceMaxNs = 60'000'000'000;
// Aggregator: worker statuses and warnings that one capture's record keeps. Further ones are
// counted in the last warning.
inline constexpr uint32_t kCaptureWorkersMax = 65'536;
inline constexpr uint32_t kCaptureWarningsMax = 64;
// Aggregator: workers without a part in a capture that its record names. Further ones are counted
// in a warning.
inline constexpr uint32_t kCaptureBystandersMax = 4'096;
// Aggregator: an agent that was here so shortly before a capture began is missed by it.
inline constexpr uint64_t kAgentMissedForNs = 3'600'000'000'000;
// Aggregator: how long a capture that has ended takes what an agent brings late, and how many such
// captures there are for one agent and in all. Beyond, the oldest is no longer waited for.
inline constexpr uint64_t kLateAgentMaxNs = 7ull * 24 * 3'600'000'000'000;
inline constexpr uint32_t kLateCapturesPerAgentMax = 16;
inline constexpr uint32_t kLateCapturesMax = 256;
// Aggregator: losses that one stream's record keeps one by one; the shortest give way.
inline constexpr uint32_t kGapsPerStreamMax = 32;
// Certificates: gaps shown of one worker, and ranges of ranks named of one job; further ones are
// counted.
inline constexpr uint32_t kCertificateGapsMax = 8;
inline constexpr uint32_t kCertificateRankRangesMax = 64;

// Export: bytes of one message to the CLI.
inline constexpr size_t kExportMessageBytes = 1u << 20;
// Files of one export, and bytes of a file's name in it.
inline constexpr size_t kExportFilesMax = 65'536;
inline constexpr size_t kExportNameBytesMax = 512;
// Delivery: files that one manifest reports, and its bytes, over which it is not read; beyond, the
// delivery fails with RESOURCE_EXHAUSTED.
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
