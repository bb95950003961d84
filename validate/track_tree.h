// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "validate/trace_report.h"

namespace neurontrace {

// The tracks as Perfetto shows them, one a line, what hangs below another indented, each with what
// is on it. Pure.
std::string TrackTree(const TraceReport& report);

}  // namespace neurontrace
