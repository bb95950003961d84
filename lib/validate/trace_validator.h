// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "lib/validate/trace_bytes.h"
#include "lib/validate/trace_report.h"

namespace neurontrace {

// Reads a trace of Perfetto's format, plain or gzipped, once from beginning to end, and reports its
// content and everything that Perfetto would drop, misread or silently tolerate
// (docs/formats/validate.md). lib/validate/limits.h bounds the memory. Fails only if `read` does:
// problems of the file are in the report. Knows nothing of neurontrace's exporter, so that both
// cannot share a mistake. Blocks in `read`; any thread.
absl::StatusOr<TraceReport> ValidateTrace(ReadBytes read);

}  // namespace neurontrace
