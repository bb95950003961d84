// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace neurontrace::cli {

// How serious a finding is. The order matters: the greatest determines the exit code.
enum class Severity : uint8_t {
  kGood,
  kNote,     // worth knowing, or not examined
  kWarning,  // works now, but may fail later
  kBroken,   // a function that people need does not work
};

// The result of one check of `doctor`.
struct Finding {
  std::string check;  // its name: "agent socket"
  Severity severity = Severity::kGood;
  // What was observed, as a sentence with the values that matter.
  std::string what;
  std::string fix;  // empty if nothing needs to be done
};

// Returns "ok", "note", "warning" or "broken". Also used as values in JSON.
std::string SeverityName(Severity severity);

// Returns a line for each finding with its fix below, and how many there are of each kind. Ends in
// a newline.
std::string FormatFindings(const std::vector<Finding>& findings);
// Returns {"worst": "warning", "findings": [{"check", "severity", "what", "fix"}]}.
std::string FormatFindingsJson(const std::vector<Finding>& findings);

// Returns 0 if nothing needs to be done, 1 if something is broken, 3 if there are warnings.
int ExitCodeOf(const std::vector<Finding>& findings);

}  // namespace neurontrace::cli
