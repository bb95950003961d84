// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/trace/limits.h"

// As lib/trace/limits.h, for resources that exports share and for exports that resume. The counters
// are named in docs/operator/metrics.md.
namespace neurontrace::limits {

// Exports that people request, running at once, in total and of one caller with a name. Further
// ones are refused with RESOURCE_EXHAUSTED, counted. Standing exports have a separate place.
inline constexpr size_t kExportsAtOnceMax = 8;
inline constexpr size_t kExportsOfCallerMax = 6;
static_assert(kExportsOfCallerMax < kExportsAtOnceMax);

// Files that an export can resume. Beyond, the CLI restarts, and the aggregator refuses.
inline constexpr size_t kExportHeldFilesMax = 4'096;

// Of a Perfetto trace that is split, what --max-size may ask for at the least. Below:
// INVALID_ARGUMENT, wrong usage in the CLI.
inline constexpr uint64_t kTracePartBytesMin = uint64_t{1} << 20;

// Header lines of another service's reply (aggregator/http). Further ones are not looked at.
inline constexpr size_t kHttpHeaderLinesMax = 64;

// The file of profiles with S3's keys. Larger: FAILED_PRECONDITION, no export.
inline constexpr size_t kS3CredentialsFileBytesMax = 1 << 20;
// Index entries that are looked at to name the event types that a capture has, where an export
// selects nothing. Beyond: the warning says nothing of types.
inline constexpr size_t kEmptySelectionEntriesMax = 65'536;
// What a service answers that gives a role its credentials. Larger: FAILED_PRECONDITION, no export.
inline constexpr size_t kRoleAnswerBytesMax = 64u << 10;

static_assert(kExportHeldFilesMax * (kExportNameBytesMax + 64) < kGrpcMessageBytesMax,
              "a request must fit into a message");

}  // namespace neurontrace::limits
