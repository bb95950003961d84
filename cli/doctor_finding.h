// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace neurontrace::cli {

enum class Severity : uint8_t {
  kGood,
  kNote,     // good to know, or not looked at
  kWarning,  // works, and will hurt one day
  kBroken,   // something that people want does not work
};

// One thing that `doctor` looked at.
struct Finding {
  std::string check;  // which: "agent socket"
  Severity severity = Severity::kGood;
  std::string what;
  std::string fix;  // empty where nothing is to be done
};

// "ok", "note", "warning", "broken".
std::string SeverityName(Severity severity);

// A line for each, its fix below, and how many there are of each kind. Ends in a newline.
std::string FormatFindings(const std::vector<Finding>& findings);
// {"worst": "warning", "findings": [{"check", "severity", "what", "fix"}]}
std::string FormatFindingsJson(const std::vector<Finding>& findings);

// 0: nothing to do; 1: something is broken; 3: there are warnings.
int ExitCodeOf(const std::vector<Finding>& findings);

}  // namespace neurontrace::cli
