// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Limits of what agent and aggregator say of themselves: logs and the page /statusz.
namespace neurontrace::limits {

// Log lines of one kind, which are equal but for their digits: so many at once, then one a second.
// Further ones are left out, and the next one says how many.
inline constexpr uint32_t kLogLinesOfKindAtOnce = 10;
// Kinds that are told apart. Beyond, the kind that shares a place with a newer one starts anew.
inline constexpr size_t kLogKinds = 1'024;
// All lines together, whatever their kind: likewise left out.
inline constexpr uint32_t kLogLinesAtOnce = 1'000;
inline constexpr uint32_t kLogLinesPerSecond = 100;
// A line. Longer: cut.
inline constexpr size_t kLogLineBytesMax = 16u << 10;
// Of the warnings and errors that /statusz shows, the newest; older ones go.
inline constexpr size_t kLogWarningsKept = 50;

// Of the HTTP port: requests that are being read or answered, each on a thread of its own; some
// more wait, and beyond that connections are closed. How long one may take to come, its head and
// its body each; later: closed.
inline constexpr int kHealthRequestsAtOnceMax = 64;
inline constexpr int kHealthRequestMsMax = 2'000;

// Rows of one table of /statusz; further ones are counted below it.
inline constexpr size_t kStatusRowsMax = 256;
// A cell. Longer: cut.
inline constexpr size_t kStatusCellBytesMax = 512;

}  // namespace neurontrace::limits
