// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/trace/limits.h"

// As lib/trace/limits.h, for the trace, XSpace and mapping files of frameworks.
namespace neurontrace::limits {

// Times of one recording are hardly further apart than this: the largest such group among the first
// times of a file tells when it was recorded.
inline constexpr uint64_t kFrameworkTimeGroupNs = uint64_t{86'400} * 1'000'000'000;
// An event whose time is further than this from the middle one of that group has no usable time (a
// decode loss, reason "no time"), and a duration that ends later is not used. Devices that never
// finished write 0, which is decades before all else.
inline constexpr uint64_t kFrameworkTimeSpreadNs = uint64_t{10} * 366 * 86'400 * 1'000'000'000;
// How many times of a file, 0 not among them, tell where the middle is.
inline constexpr size_t kFrameworkTimesSampledMax = 64;

// Spans that have begun with B or b and whose end has not been read, of one file, and what their
// names and categories take. Beyond: the older half is given up (shown as open, their ends as
// without a begin), which is counted.
inline constexpr size_t kFrameworkOpenSpansMax = 65'536;
inline constexpr size_t kFrameworkOpenSpanBytesMax = size_t{16} << 20;
// Files of a watched directory that may be traces by their names; each capture remembers their
// state. Beyond: the last ones in the order of their paths are ignored, which is counted.
inline constexpr size_t kFrameworkDirectoryFilesMax = 16'384;
// Contents of one file that are read as it is overwritten again and again, and how often it is
// opened for that. Beyond: what it has then is not read, which is said.
inline constexpr uint32_t kFrameworkVersionsPerFileMax = 16;
inline constexpr uint32_t kFrameworkOpeningsPerFileMax = 64;

// Entries of one, beyond which the rest of it is a decode loss, and operations of one entry, beyond
// which the entry is one.
inline constexpr uint64_t kMappingEntriesMax = 1u << 20;
inline constexpr size_t kMappingOperationsPerEntryMax = 1'024;

// Names of events and stats that are kept of one plane of an XSpace. Events named beyond it are
// decode losses.
inline constexpr size_t kXSpaceNameBytesMax = size_t{32} << 20;

static_assert(kMappingOperationsPerEntryMax * 21 + 2 <= kStringBytesMax,
              "numbers of 20 signs and their commas must fit into an attribute");

}  // namespace neurontrace::limits
