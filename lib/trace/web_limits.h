// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Limits of the server of the page (lib/web).
namespace neurontrace::limits {

// Connections. Beyond, a new one is closed at once, and so is one of an address that has more than
// three times as many as are free: browsers open at most six and try again.
inline constexpr size_t kWebConnectionsMax = 64;
// Answers that are made at once; further requests wait for a thread.
inline constexpr int kWebThreads = 24;
// Pages that follow a running capture, each with a thread. Further ones are refused with 429.
inline constexpr int kWebWatchesMax = 12;
static_assert(kWebWatchesMax < kWebThreads, "other requests always find a thread");
// The head of a request: 431. Its body: 413.
inline constexpr size_t kWebHeadBytesMax = 32u << 10;
inline constexpr size_t kWebBodyBytesMax = 1u << 20;
// What is read and dropped of a refused request, so that its sender sees the answer. Beyond: the
// connection is reset.
inline constexpr size_t kWebLingerBytesMax = 4u << 20;
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
// Downloads of exports whose progress is known. Beyond: the one that ended first is forgotten, and
// if none has ended a further one is refused with 429.
inline constexpr size_t kWebDownloadsMax = 32;
// Bytes of the name that a page gives a download. Longer: 400.
inline constexpr size_t kWebDownloadNameBytesMax = 64;
// Warnings, and notes, that the state of a download lists; further ones are counted there.
inline constexpr int kWebDownloadTextsMax = 64;
// Temporary files of one archive: their bytes, and how many grow at once. Beyond: the download
// fails, and its error names the command that writes the files without an archive.
inline constexpr uint64_t kWebSpoolBytesMax = uint64_t{8} << 30;
inline constexpr size_t kWebSpoolFilesMax = 256;
// A file of --web-assets; the built page has 100 kB. Larger: refused at start.
inline constexpr size_t kWebAssetBytesMax = 16u << 20;

// The page at the aggregator's port (aggregator/web), which several people share: connections,
// threads that make answers, and pages that follow a running capture.
inline constexpr size_t kPageConnectionsMax = 256;
inline constexpr int kPageThreads = 48;
inline constexpr int kPageWatchesMax = 32;
static_assert(kPageWatchesMax < kPageThreads, "other requests always find a thread");
// Of these pages, those of one caller, where callers have names. Further ones are refused with 429.
inline constexpr int kPageWatchesOfCallerMax = 8;
// Browsers that have signed in with a token. Beyond: refused with 429. Of one caller: its least
// recently used session ends.
inline constexpr size_t kPageSessionsMax = 4'096;
inline constexpr size_t kPageSessionsOfCallerMax = 64;
// A session ends so long after its last request, and so long after it began.
inline constexpr uint64_t kPageSessionIdleNs = 7'200'000'000'000;
inline constexpr uint64_t kPageSessionNs = 43'200'000'000'000;
// Wrong tokens of one address at once; further ones are tried one a pause, others refused with 429.
inline constexpr uint64_t kSignInFailuresAtOnce = 10;
inline constexpr uint64_t kSignInPauseNs = 10'000'000'000;
// Addresses of wrong tokens that are remembered. Beyond: the one that has not failed for the
// longest time is forgotten.
inline constexpr size_t kSignInAddressesMax = 4'096;

}  // namespace neurontrace::limits
