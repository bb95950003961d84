// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// As lib/trace/limits.h, for what taps send to an agent's socket. The counters are named in
// docs/operator/metrics.md.
namespace neurontrace::limits {

// Threads that close what peers made or sent, as closing may wait for somebody. Beyond, what is to
// be closed waits for one of them.
inline constexpr size_t kPeerCloserThreadsMax = 8;
// Descriptors that so wait. Beyond, no connection is accepted until there are fewer, counted: those
// that are there may add what one message carries each.
inline constexpr size_t kPeerDescriptorsWaitingMax = 256;

// Bytes of the kernel's table of sockets, some 80 each, in which another agent's socket is looked
// for. A larger table is not looked at: who names such a socket is listed here, with what to do.
inline constexpr size_t kSocketTableBytesMax = size_t{1} << 20;

}  // namespace neurontrace::limits
