// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lib/trace/daemon_limits.h"
#include "lib/trace/limits.h"

// Limits of access control: of the policy file, tokens, connections, calls and the audit log. Each
// comment states what happens beyond a limit; docs/operator/security.md explains them to operators.
namespace neurontrace::limits {

// The file of --access. Beyond any of these limits the whole file is refused, with a message.
inline constexpr size_t kAccessFileBytesMax = 1u << 20;
inline constexpr size_t kAccessRulesMax = 4'096;
inline constexpr size_t kAccessNameBytesMax = 128;
inline constexpr size_t kAccessPatternsMax = 64;  // of one key of one rule

// A bearer token. Longer: refused.
inline constexpr size_t kTokenBytesMax = 8u << 10;
// A PEM file of certificates or of a key. Larger: refused.
inline constexpr size_t kPemBytesMax = 1u << 20;

// Certificates whose expiry dates are cached. Beyond: the cache is emptied, and certificates are
// parsed again.
inline constexpr size_t kCertificateEndsKnownMax = 16'384;

// The headers of a call, including its token. Larger: gRPC refuses the call.
inline constexpr int kGrpcMetadataBytesMax = 16 << 10;
// Of all connections of a port one address may hold at most this many times as many as are free,
// which is three quarters if no other address is connected. Further ones are closed at once, and
// counted.
inline constexpr int kGrpcConnectionsPerFree = 3;
// Calls at once on one connection. Further ones wait at the client.
inline constexpr int kGrpcStreamsPerConnectionMax = 128;
// Channels of an agent: orders, chunks, artifacts, and two for its clocks. Three of them have a
// call all the time; a connection without a call ends after kGrpcConnectionIdleMsMax.
inline constexpr int kGrpcChannelsPerAgent = 5;
// Connections at once, as far as the process's limit of open files allows them: half of it, at most
// kDescriptorsForFiles, is reserved for files. Further ones are closed at once, and counted.
inline constexpr int kGrpcConnectionsMax = 98'304;
inline constexpr int kGrpcConnectionsOfOthers = 8'192;  // operators, and agents that reconnect
inline constexpr uint64_t kDescriptorsForFiles = 1'024;
constexpr uint64_t DescriptorsForFiles(uint64_t descriptors) {
  return std::min(descriptors / 2, kDescriptorsForFiles);
}
// Of the descriptors for files, how many the store keeps open for its tables and blobs. The rest is
// for its log and manifest, the health port, exports and requests to other services.
constexpr uint64_t StoreFilesOpenMax(uint64_t descriptors) {
  return DescriptorsForFiles(descriptors) / 2;
}
// The limit of open files that a daemon asks for at its start.
inline constexpr uint64_t kDescriptorsMax = 131'072;
// A daemon does not start if the kernel allows it fewer.
inline constexpr uint64_t kDescriptorsMin = 512;
// A connection without a call for this long is closed; the client connects again for its next call.
inline constexpr int kGrpcConnectionIdleMsMax = 300'000;
// A connection of this age accepts no further calls and ends with those in progress. The client
// connects again and presents its current certificate. Long calls are not interrupted. Some
// authorities issue certificates for an hour, so this is less than half of that.
inline constexpr int kGrpcConnectionAgeMsMax = 1'200'000;
static_assert(kGrpcConnectionAgeMsMax > 2 * kGrpcConnectionIdleMsMax);
// From a connection's first byte to the end of the TLS handshake and HTTP/2's settings. Later:
// closed.
inline constexpr int kGrpcHandshakeMsMax = 10'000;

static_assert(kGrpcConnectionsMax >=
                  int{kAgentsMax} * kGrpcChannelsPerAgent + kGrpcConnectionsOfOthers,
              "as many agents as there may be can connect");
static_assert(kDescriptorsMax >= kGrpcConnectionsMax + kDescriptorsForFiles);
static_assert(DescriptorsForFiles(kDescriptorsMin) - StoreFilesOpenMax(kDescriptorsMin) >=
                  kHealthConnectionsMax + 32,
              "the health port alone may have so many");

// Calls that last as long as their client reads, each with a thread: watches of captures here,
// exports in export_limits.h. At once in total, and of one caller where callers have names; further
// ones are refused. kGrpcThreadsMax counts the threads of all calls; a call that would need a
// further one is refused.
inline constexpr size_t kWatchesAtOnceMax = 256;
inline constexpr size_t kWatchesOfCallerMax = 64;
inline constexpr int kGrpcThreadsMax = 1'024;
static_assert(kWatchesOfCallerMax < kWatchesAtOnceMax && kWatchesAtOnceMax < kGrpcThreadsMax / 2);
// A client that reads nothing of such a call for this long is considered gone: the call is ended.
inline constexpr uint64_t kUnreadNsMax = 120'000'000'000;

// Callers whose call rates are counted, by name or by address. Beyond: the one that has not called
// for the longest time is forgotten, counted, and may send a burst again.
inline constexpr size_t kCallersCountedMax = 16'384;
// Calls of each caller except agents, unless --calls-per-second sets another rate; a burst may have
// twice as many. Further ones are refused.
inline constexpr uint32_t kCallsPerSecondDefault = 100;
inline constexpr uint32_t kCallsPerSecondMax = 1'000'000;
inline constexpr uint32_t kCallSecondsAtOnce = 2;
// Calls of all agents of one address. A single agent makes a handful that last, but a fleet of
// thousands may share one address behind a NAT, or in a simulation, and reconnect at once.
inline constexpr uint32_t kAgentCallsPerSecondMax = 2'000;
inline constexpr uint32_t kAgentCallsAtOnceMax = 20'000;

// Tokens of Kubernetes service accounts whose reviews are cached. Beyond: that of the caller that
// has not called for the longest time is forgotten, and counted.
inline constexpr size_t kTokensKnownMax = 4'096;
// How long an answer of the API server is valid: accepted, rejected, no answer.
inline constexpr uint64_t kTokenGoodNs = 60'000'000'000;
inline constexpr uint64_t kTokenBadNs = 10'000'000'000;
inline constexpr uint64_t kTokenFailedNs = 1'000'000'000;
// Token reviews in progress, separately for tokens that were accepted before and for all others.
// Calls that would need a further one are refused, and counted. So are calls beyond
// kTokenWaitersMax that wait for a review that another call has started.
inline constexpr size_t kTokenReviewsAtOnceMax = 16;
inline constexpr uint32_t kTokenReviewsPerSecondMax = 50;
inline constexpr uint32_t kTokenReviewsBurstMax = 200;
inline constexpr size_t kTokenWaitersMax = 64;
// The time of one review with its answer; the size of an answer, and of a token's claims. Larger:
// refused.
inline constexpr uint64_t kTokenReviewMsMax = 5'000;
inline constexpr size_t kTokenReviewBytesMax = 64u << 10;
static_assert(kTokensKnownMax > 2 * kTokenReviewsAtOnceMax);

// Log lines a second that unauthenticated clients of a port can cause; further ones are counted.
inline constexpr uint32_t kRefusalsWrittenPerSecond = 10;  // in the audit log
inline constexpr uint32_t kGrpcLogLinesPerSecond = 10;

// Slots of the gRPC port: while at most this many addresses are connected, the audit log has the
// address of every refused call. Each slot takes some 100 KiB.
inline constexpr size_t kPeerSlots = 64;

// The audit log is renamed to NAME.1 at this size; the previous NAME.1 is deleted.
inline constexpr uint64_t kAuditLogBytesMax = uint64_t{64} << 20;
// One text in the audit log. Longer: cut.
inline constexpr size_t kAuditTextBytesMax = 512;

}  // namespace neurontrace::limits
