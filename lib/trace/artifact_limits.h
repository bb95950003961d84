// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Limits of artifacts, with what happens at them. The counters are named in
// docs/operator/metrics.md.
namespace neurontrace::limits {

// One file. Larger: refused (TOO_LARGE), counted.
inline constexpr uint64_t kArtifactBytesMax = uint64_t{16} << 30;
// A name of a file or directory, as file systems have it.
inline constexpr size_t kArtifactNameBytesMax = 255;
// References of one capture. Further ones are refused (TOO_MANY), counted.
inline constexpr size_t kArtifactsPerCaptureMax = 65'536;
// Of one capture, artifacts that are known not to be kept, and bytes of the words that say why
// (cut). Further ones are not noted: the capture has at least so many.
inline constexpr size_t kArtifactsForgoneMax = 65'536;
inline constexpr size_t kArtifactReasonBytesMax = 256;
// Default limit of all content that an aggregator keeps. Content that does not fit is refused
// (FULL), counted; stored content is never replaced.
inline constexpr uint64_t kArtifactStoreBytesDefault = uint64_t{64} << 30;

// Bytes of one message of an upload, and uploads that an aggregator accepts at once: further agents
// have to retry (BUSY).
inline constexpr size_t kArtifactPartBytes = size_t{1} << 20;
inline constexpr size_t kArtifactPartBytesMax = size_t{4} << 20;
inline constexpr size_t kArtifactUploadsMax = 8;
// Interrupted uploads that can be resumed. Beyond: the oldest is deleted, and its agent sends it
// again.
inline constexpr size_t kArtifactPartialsMax = 4'096;
static_assert(kArtifactPartialsMax > kArtifactUploadsMax);
// Bytes that an upload has to send in each period. Otherwise the aggregator ends it, counted; the
// received bytes are kept, and the upload can be resumed.
inline constexpr uint64_t kArtifactStallNs = 30'000'000'000;
inline constexpr uint64_t kArtifactStallBytes = 65'536;
// How long an agent waits for an aggregator that takes nothing of an upload or does not answer at
// its end. It covers an aggregator that first reads what came before, of up to kArtifactBytesMax.
inline constexpr uint64_t kArtifactAnswerNs = 300'000'000'000;

// Agent: what is looked at in one inspect directory, and the files of one capture. Further ones are
// not found, which is counted.
inline constexpr size_t kInspectEntriesMax = 10'000;
inline constexpr size_t kArtifactsPerAgentMax = 4'096;
// How long a file has to be seen the same before it is taken: who writes one pauses in between.
inline constexpr uint64_t kArtifactRestNs = 1'000'000'000;
// How often a file that changes while it is read is read again, and how long after a capture's end
// its files may still settle and be sent; then they are given up, counted.
inline constexpr uint32_t kArtifactReadsMax = 3;
inline constexpr uint64_t kArtifactPatienceNs = 30'000'000'000;

static_assert(kArtifactRestNs < kArtifactPatienceNs);
static_assert(kArtifactPartBytes <= kArtifactPartBytesMax);

}  // namespace neurontrace::limits
