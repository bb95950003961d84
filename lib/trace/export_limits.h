// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/trace/limits.h"

// Limits that many exports share, and limits of exports that continue an earlier one. The counters
// are described in docs/operator/metrics.md.
namespace neurontrace::limits {

// Exports on request that run at once, in total and of one caller where callers have names. Further
// ones are refused with RESOURCE_EXHAUSTED, counted. Standing exports do not count.
inline constexpr size_t kExportsAtOnceMax = 8;
inline constexpr size_t kExportsOfCallerMax = 6;
static_assert(kExportsOfCallerMax < kExportsAtOnceMax);

// Files of a partial download that an export continues. Beyond: the CLI starts from the beginning,
// and the aggregator refuses.
inline constexpr size_t kExportHeldFilesMax = 4'096;

// The smallest --max-size of a Perfetto trace. Below: INVALID_ARGUMENT, a usage error in the CLI.
inline constexpr uint64_t kTracePartBytesMin = uint64_t{1} << 20;

// Header lines of another service's reply (aggregator/http). Further ones are ignored.
inline constexpr size_t kHttpHeaderLinesMax = 64;

// The file of profiles with S3's keys. Larger: the export fails with FAILED_PRECONDITION.
inline constexpr size_t kS3CredentialsFileBytesMax = 1 << 20;
// Index entries that are read to name the event types that a capture has when an export selects
// nothing. Beyond: the warning names no types.
inline constexpr size_t kEmptySelectionEntriesMax = 65'536;
// The answer of a service that issues credentials of a role. Larger: the export fails with
// FAILED_PRECONDITION.
inline constexpr size_t kRoleAnswerBytesMax = 64u << 10;

static_assert(kExportHeldFilesMax * (kExportNameBytesMax + 64) < kGrpcMessageBytesMax,
              "a request must fit into a message");

}  // namespace neurontrace::limits
