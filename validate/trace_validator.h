// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "validate/trace_bytes.h"
#include "validate/trace_report.h"

namespace neurontrace {

// Reads a trace of Perfetto's format, plain or gzipped, and says what it holds and what Perfetto
// would drop, misread or silently put up with; docs/formats/validate.md has the checks. The file is
// read once, in its order, whatever it holds; memory is bounded by validate/limits.h. Events of a
// track that are not in the order of time are counted, and how they nest is not checked.
//
// Errors are those of `read` alone: what is wrong with the file is in the report.
absl::StatusOr<TraceReport> ValidateTrace(ReadBytes read);

}  // namespace neurontrace
