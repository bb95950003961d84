// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_finding.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/exit_code.h"
#include "cli/text.h"
#include "lib/base/clean_text.h"
#include "lib/base/json_writer.h"

namespace neurontrace::cli {
namespace {

// A line of text from another process may be of any length.
constexpr size_t kShownBytesMax = 4096;

// Returns text that is safe to print. Other processes report much of it about themselves, and could
// otherwise control the terminal of root.
std::string Shown(const std::string& text) { return CleanText(text, kShownBytesMax); }

// Returns the greatest severity; kGood for no finding.
Severity WorstOf(const std::vector<Finding>& findings) {
  Severity worst = Severity::kGood;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

}  // namespace

std::string SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kGood:
      return "ok";
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kBroken:
      return "broken";
  }
  return "unknown";
}

std::string FormatFindings(const std::vector<Finding>& findings) {
  size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.check.size());
  std::string out;
  size_t counts[4] = {};
  for (const Finding& finding : findings) {
    ++counts[static_cast<size_t>(finding.severity)];
    out += fmt::format("{:<8} {:<{}}  {}\n", SeverityName(finding.severity), finding.check, width,
                       Shown(finding.what));
    if (finding.fix.empty()) continue;
    // The fix is aligned below the text of its finding.
    out += fmt::format("{:{}}fix: {}\n", "", width + 11, Shown(finding.fix));
  }
  return out + fmt::format("\n{} ok, {}, {}, {} broken\n", counts[0],
                           FormatCounted(counts[1], "note"), FormatCounted(counts[2], "warning"),
                           counts[3]);
}

std::string FormatFindingsJson(const std::vector<Finding>& findings) {
  JsonWriter out(JsonWriter::Style::kSpaced);
  out.Open('{').Space("\n  ").Member("worst", SeverityName(WorstOf(findings)));
  out.Space("\n  ").Key("findings").Open('[');
  for (const Finding& finding : findings) {
    out.Space("\n    ").Open('{').Member("check", finding.check);
    out.Member("severity", SeverityName(finding.severity)).Member("what", finding.what);
    out.Member("fix", finding.fix).Close('}');
  }
  return out.Space("\n  ").Close(']').Space("\n").Close('}').Take() + "\n";
}

int ExitCodeOf(const std::vector<Finding>& findings) {
  switch (WorstOf(findings)) {
    case Severity::kBroken:
      return kExitFailed;
    case Severity::kWarning:
      return kExitIncomplete;
    default:
      return kExitDone;
  }
}

}  // namespace neurontrace::cli
