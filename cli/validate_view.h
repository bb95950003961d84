// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "validate/trace_report.h"

namespace neurontrace::cli {

// What a trace holds and what is wrong with it, for people and for scripts. Pure functions.
std::string FormatTraceReport(const std::string& path, const TraceReport& report);
// `with_tracks`: each track, too.
std::string FormatTraceReportJson(const std::string& path, const TraceReport& report,
                                  bool with_tracks);

}  // namespace neurontrace::cli
