// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "lib/validate/trace_bytes.h"
#include "lib/validate/trace_report.h"

namespace neurontrace {

// Reads a trace of Perfetto's format, plain or gzipped, once and in its order, and reports what it
// holds and what Perfetto would drop, misread or silently tolerate (docs/formats/validate.md).
// lib/validate/limits.h bounds the memory. Fails only if `read` does: what is wrong with the file
// is in the report.
absl::StatusOr<TraceReport> ValidateTrace(ReadBytes read);

}  // namespace neurontrace
