// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "cli/exit_code.h"
#include "neurontrace/v1/insight.pb.h"

// Answers of `neurontrace why` as text for a terminal. Texts of the aggregator have names from
// outside in them, so control characters are removed.
namespace neurontrace::cli {

// Returns the answer: each verdict with its time, what was ruled out and the command that shows it,
// then what was refused, what was judged, and warnings. Lines are wrapped at `columns` (0: any
// width), except for commands, which people copy.
std::string FormatInsight(const v1::InsightReport& report, size_t columns);

// Returns the short answer of merged stacks: of whom and when, the path that most share, where odd
// ones differ, and whose were not taken. Lines are wrapped as above.
std::string FormatStacks(const v1::StacksReport& report, size_t columns);
// Returns the whole tree, one frame a line with the number of its workers; * marks what is odd.
std::string FormatStackTree(const v1::StacksReport& report);

// Returns 3 if a part of the cores was not judged, or none at all; else 0, also if nobody is named.
ExitCode ExitCodeOf(const v1::InsightReport& report);

// Finds what differs between one answer of a watch and the next. An aggregator that was restarted
// has forgotten its verdicts and needs some time to make them again: until it has judged for
// limits::kWatchWindowNs, what was known stays known, and refusals are not reported. One thread.
class InsightChanges {
 public:
  // Returns the lines for what is new and for what has ended, each with the time; for the first
  // answer also what was judged, and for the first one of another run of the aggregator that it was
  // restarted. Empty if nothing changed.
  std::string Take(const v1::InsightReport& report, uint64_t now_ns, size_t columns);

 private:
  // Returns whether what is known is kept, and adds the line if this is the first answer of another
  // run.
  bool IsSettling(const v1::InsightReport& report, uint64_t now_ns, size_t columns,
                  std::string& text);

  bool is_first_ = true;
  uint64_t live_since_ns_ = 0;                // as in the last report that had it
  uint64_t settled_at_ns_ = 0;                // reference time; 0: no restart was seen
  std::map<std::string, std::string> known_;  // text by identity
};

}  // namespace neurontrace::cli
