// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Limits of annotations in an agent (agent/source/annotate). Those of the library in the processes
// are in annotate/annotation_format.h and annotate/name_table.h.
namespace neurontrace::limits {

// Processes that annotate at a time. Beyond: refused, counted as a refused tap.
inline constexpr size_t kAnnotatedProcessesMax = 1'024;
// Ranges of one process that are open at a time. Beyond: a further one is not remembered, so that
// its end has no begin; counted.
inline constexpr size_t kAnnotationRangesOpenMax = 65'536;
// Records of one process that one poll reads, so that polls stay short. The rest stays in the ring
// until the next poll.
inline constexpr size_t kAnnotationRecordsPerPollMax = 16'384;
// How long after a capture's end records that were stamped before it are still read: their threads
// can be interrupted while they write. Later ones are left out.
inline constexpr uint64_t kAnnotationLateNs = 60'000'000;
// How long a live process may take to return after its connection ended; the library tries again
// at least every five seconds. Beyond: its streams end, as if it had ended.
inline constexpr uint64_t kAnnotationReturnNs = 12'000'000'000;

}  // namespace neurontrace::limits
