// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lib/trace/daemon_limits.h"
#include "lib/trace/limits.h"

// Limits of access control: of the policy file, of tokens, of connections and of the audit log.
namespace neurontrace::limits {

// The file of --access. Beyond any of these: the whole file is refused, with the reason.
inline constexpr size_t kAccessFileBytesMax = 1u << 20;
inline constexpr size_t kAccessRulesMax = 4'096;
inline constexpr size_t kAccessNameBytesMax = 128;
inline constexpr size_t kAccessPatternsMax = 64;  // of one key of one rule

// A bearer token. Longer: refused.
inline constexpr size_t kTokenBytesMax = 8u << 10;
// A PEM file of certificates or of a key. Larger: refused.
inline constexpr size_t kPemBytesMax = 1u << 20;

// Certificates whose ends are remembered. Beyond: all are forgotten, and read again.
inline constexpr size_t kCertificateEndsKnownMax = 16'384;

// The headers of a call, its token with them. Larger: gRPC refuses the call.
inline constexpr int kGrpcMetadataBytesMax = 16 << 10;
// An address has at most this many times the free connections of a port: three quarters without
// other clients. Further ones are closed at once, and counted.
inline constexpr int kGrpcConnectionsPerFree = 3;
// Calls at once on one connection. Further ones wait at the client.
inline constexpr int kGrpcStreamsPerConnectionMax = 128;
// Channels of an agent: orders, chunks, artifacts, and two for its clocks. Three have a call all
// the time; a connection without one ends by itself.
inline constexpr int kGrpcChannelsPerAgent = 5;
// Connections at once, as far as the process's limit of open files lets them: half of it, or
// kDescriptorsForFiles, are for files. Further ones are closed at once, and counted.
inline constexpr int kGrpcConnectionsMax = 98'304;
inline constexpr int kGrpcConnectionsOfOthers = 8'192;  // operators, and agents that return
inline constexpr uint64_t kDescriptorsForFiles = 1'024;
constexpr uint64_t DescriptorsForFiles(uint64_t descriptors) {
  return std::min(descriptors / 2, kDescriptorsForFiles);
}
// Of those for files, what the store keeps open of its tables and blobs; the rest is for its log
// and manifest, the health port, exports and questions to other services.
constexpr uint64_t StoreFilesOpenMax(uint64_t descriptors) {
  return DescriptorsForFiles(descriptors) / 2;
}
// What a daemon raises its limit of open files to, where it may.
inline constexpr uint64_t kDescriptorsMax = 131'072;
// Where it may have less than this, it does not start.
inline constexpr uint64_t kDescriptorsMin = 512;
// A connection without a call for this long is closed; its client reconnects for the next call.
inline constexpr int kGrpcConnectionIdleMsMax = 300'000;
// A connection of this age accepts no further calls, and ends with its present calls. The client
// reconnects for the next call, and presents its current certificate. Long calls are unaffected.
// The age is less than half of an hour, the validity of certificates of some authorities.
inline constexpr int kGrpcConnectionAgeMsMax = 1'200'000;
static_assert(kGrpcConnectionAgeMsMax > 2 * kGrpcConnectionIdleMsMax);
// From a connection's first byte to its last of TLS and HTTP/2's settings. Later: closed.
inline constexpr int kGrpcHandshakeMsMax = 10'000;

static_assert(kGrpcConnectionsMax >=
                  int{kAgentsMax} * kGrpcChannelsPerAgent + kGrpcConnectionsOfOthers,
              "as many agents as there may be can connect");
static_assert(kDescriptorsMax >= kGrpcConnectionsMax + kDescriptorsForFiles);
static_assert(DescriptorsForFiles(kDescriptorsMin) - StoreFilesOpenMax(kDescriptorsMin) >=
                  kHealthConnectionsMax + 32,
              "the health port alone may have so many");

// Calls that last as long as their reader likes, each with a thread: watches of captures here,
// exports in export_limits.h. At once, and of one caller where callers have names; further ones are
// refused. Threads of all calls together; a call that would need a further one is refused.
inline constexpr size_t kWatchesAtOnceMax = 256;
inline constexpr size_t kWatchesOfCallerMax = 64;
inline constexpr int kGrpcThreadsMax = 1'024;
static_assert(kWatchesOfCallerMax < kWatchesAtOnceMax && kWatchesAtOnceMax < kGrpcThreadsMax / 2);
// If the client has read nothing of such a call for this long, the call is ended.
inline constexpr uint64_t kUnreadNsMax = 120'000'000'000;

// Callers whose calls are counted, by name or by address. Beyond: the caller with the oldest call
// is forgotten, and counted, and may make a full burst again.
inline constexpr size_t kCallersCountedMax = 16'384;
// Of each caller but agents, unless --calls-per-second says otherwise; twice as many at once.
// Further ones are refused.
inline constexpr uint32_t kCallsPerSecondDefault = 100;
inline constexpr uint32_t kCallsPerSecondMax = 1'000'000;
inline constexpr uint32_t kCallSecondsAtOnce = 2;
// Calls of the agents of one address. An agent makes a handful of long calls, but an address can
// have a fleet of thousands, also simulated, whose agents all reconnect at once.
inline constexpr uint32_t kAgentCallsPerSecondMax = 2'000;
inline constexpr uint32_t kAgentCallsAtOnceMax = 20'000;

// Tokens of Kubernetes service accounts. Answers about as many are kept; beyond, the answer for the
// caller with the oldest call is forgotten, and counted.
inline constexpr size_t kTokensKnownMax = 4'096;
// How long the API server's answer counts: the token is good, is not, there was no answer.
inline constexpr uint64_t kTokenGoodNs = 60'000'000'000;
inline constexpr uint64_t kTokenBadNs = 10'000'000'000;
inline constexpr uint64_t kTokenFailedNs = 1'000'000'000;
// Questions about them, of tokens that were good before and of all others each. Calls that would
// need a further one are refused, and counted. So are calls beyond this many that wait for the
// answer to another call's question.
inline constexpr size_t kTokenReviewsAtOnceMax = 16;
inline constexpr uint32_t kTokenReviewsPerSecondMax = 50;
inline constexpr uint32_t kTokenReviewsBurstMax = 200;
inline constexpr size_t kTokenWaitersMax = 64;
// One question and its answer; the answer, and the claims of a token. Larger: refused.
inline constexpr uint64_t kTokenReviewMsMax = 5'000;
inline constexpr size_t kTokenReviewBytesMax = 64u << 10;
static_assert(kTokensKnownMax > 2 * kTokenReviewsAtOnceMax);

// Lines a second of what strangers at a port can cause; further ones are counted.
inline constexpr uint32_t kRefusalsWrittenPerSecond = 10;  // in the audit log
inline constexpr uint32_t kGrpcLogLinesPerSecond = 10;

// Slots of the gRPC port: as long as fewer addresses are connected, the audit log has the address
// of every refused call. Each takes some 100 KiB.
inline constexpr size_t kPeerSlots = 64;

// The audit log: when it is as large as this, it is renamed to NAME.1, and what was that is gone.
inline constexpr uint64_t kAuditLogBytesMax = uint64_t{64} << 20;
// One text in it. Longer: cut.
inline constexpr size_t kAuditTextBytesMax = 512;

}  // namespace neurontrace::limits
