// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Limits of the server of the page (lib/web).
namespace neurontrace::limits {

// Connections. Beyond, a new one is closed at once: browsers open at most six and try again.
inline constexpr size_t kWebConnectionsMax = 64;
// Answers that are made at once; further requests wait for a thread.
inline constexpr int kWebThreads = 24;
// Pages that follow a running capture, each with a thread. Further ones are refused with 429.
inline constexpr int kWebWatchesMax = 12;
static_assert(kWebWatchesMax < kWebThreads, "other requests always find a thread");
// The head of a request: 431. Its body: 413.
inline constexpr size_t kWebHeadBytesMax = 32u << 10;
inline constexpr size_t kWebBodyBytesMax = 1u << 20;
// How long a connection may be idle between requests, how long a request may take to arrive, and
// how long a client may take nothing of an answer. Beyond: the connection is closed.
inline constexpr int kWebIdleMsMax = 60'000;
inline constexpr int kWebRequestMsMax = 10'000;
inline constexpr int kWebUnreadMsMax = 30'000;
// Requests on one connection, after which it is closed so that connections are shared fairly.
inline constexpr int kWebRequestsOfConnectionMax = 10'000;
// Answers above this size are compressed if the client accepts that.
inline constexpr size_t kWebCompressBytesMin = 1'024;
// How long a call of the aggregator may take to answer a request of the page.
inline constexpr int kWebCallMsMax = 30'000;
// A file of --web-assets; the built page has 100 kB. Larger: refused at start.
inline constexpr size_t kWebAssetBytesMax = 16u << 20;

}  // namespace neurontrace::limits
