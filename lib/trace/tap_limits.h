// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// Limits of what taps send to an agent's socket. The counters are named in
// docs/operator/metrics.md.
namespace neurontrace::limits {

// Threads that close descriptors which peers made or sent, as close(2) of such a descriptor may
// block. Beyond: descriptors wait for one of these threads.
inline constexpr size_t kPeerCloserThreadsMax = 8;
// Descriptors that wait to be closed. Beyond: no connection is accepted until there are fewer,
// counted. Connected peers may still add as many as one message carries each.
inline constexpr size_t kPeerDescriptorsWaitingMax = 256;

// Bytes of the kernel's table of sockets, some 80 for each, in which another agent's socket is
// searched. A larger table is not read.
inline constexpr size_t kSocketTableBytesMax = size_t{1} << 20;

}  // namespace neurontrace::limits
