// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "trace/capture_record.h"

namespace neurontrace {

// Which captures are exported by themselves when they end, how and where to. A plain value.
struct StandingRule {
  std::string name;                  // of letters, digits, - and _
  std::string to;                    // a destination of ExportRoots
  std::vector<std::string> formats;  // as in --format; at least one
  std::string job;                   // that the capture was asked for by; empty: any
  std::string capture;               // the capture's name, or its beginning and *; empty: any
  bool incomplete = true;            // those that are incomplete, too
};

// Parses a table of TOML in one line with the keys name, to, formats (a string or an array of them;
// default: perfetto), job, capture, incomplete (true or false). INVALID_ARGUMENT says what is
// wrong.
absl::StatusOr<StandingRule> ParseStandingRule(std::string_view text);

// True for a capture that has ended with something in it and that the rule selects.
bool Matches(const StandingRule& rule, const CaptureRecord& record);

}  // namespace neurontrace
