// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Limits of artifacts, with what happens at them. The counters are named in
// docs/operator/metrics.md.
namespace neurontrace::limits {

// One file. Larger: refused (TOO_LARGE), counted.
inline constexpr uint64_t kArtifactBytesMax = uint64_t{16} << 30;
// The name of a file or directory, as limited by file systems.
inline constexpr size_t kArtifactNameBytesMax = 255;
// References of one capture. Further ones are refused (TOO_MANY), counted.
inline constexpr size_t kArtifactsPerCaptureMax = 65'536;
// Artifacts of one capture that are known to be missing, and the bytes of each reason (longer:
// cut). Further ones are not recorded: the capture misses at least this many.
inline constexpr size_t kArtifactsForgoneMax = 65'536;
inline constexpr size_t kArtifactReasonBytesMax = 256;
// Artifacts and missing files that one answer to operators lists. Further ones are counted in it.
inline constexpr size_t kArtifactsListedMax = 4'096;
// All content that an aggregator stores, unless it is configured otherwise. Further content is
// refused (FULL), counted; nothing is deleted to make room.
inline constexpr uint64_t kArtifactStoreBytesDefault = uint64_t{64} << 30;

// Bytes of one message of an upload: as sent, and as accepted. Uploads that an aggregator accepts
// at once; further agents are asked to try again (BUSY).
inline constexpr size_t kArtifactPartBytes = size_t{1} << 20;
inline constexpr size_t kArtifactPartBytesMax = size_t{4} << 20;
inline constexpr size_t kArtifactUploadsMax = 8;
// Interrupted uploads that can be resumed. Beyond: the one that has been idle the longest is
// deleted, and its agent sends the file from the beginning.
inline constexpr size_t kArtifactPartialsMax = 4'096;
static_assert(kArtifactPartialsMax > kArtifactUploadsMax);
// Bytes that an upload has to bring in each period. Otherwise the aggregator ends it, counted; the
// bytes received so far are kept, and the upload can be resumed.
inline constexpr uint64_t kArtifactStallNs = 30'000'000'000;
inline constexpr uint64_t kArtifactStallBytes = 65'536;
// How long an agent waits for an aggregator that accepts no bytes of an upload or does not answer
// at its end. Includes the time in which an aggregator that resumes an upload first reads the bytes
// that it has, up to kArtifactBytesMax.
inline constexpr uint64_t kArtifactAnswerNs = 300'000'000'000;

// Agent: entries that are examined in one inspect directory, and files of one capture. Further ones
// are not found, which is counted.
inline constexpr size_t kInspectEntriesMax = 10'000;
inline constexpr size_t kArtifactsPerAgentMax = 4'096;
// How long a file has to be unchanged before it is read, as its writer may pause.
inline constexpr uint64_t kArtifactRestNs = 1'000'000'000;
// How often a file that changes while it is read is read again, and how long after a capture's end
// its files may still change and be sent. Beyond either the file is given up, counted.
inline constexpr uint32_t kArtifactReadsMax = 3;
inline constexpr uint64_t kArtifactPatienceNs = 30'000'000'000;

static_assert(kArtifactRestNs < kArtifactPatienceNs);
static_assert(kArtifactPartBytes <= kArtifactPartBytesMax);

}  // namespace neurontrace::limits
