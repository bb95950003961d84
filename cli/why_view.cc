// SPDX-License-Identifier: Apache-2.0
#include "cli/why_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/text.h"
#include "lib/base/clean_text.h"
#include "lib/trace/watch_limits.h"

namespace neurontrace::cli {
namespace {

constexpr size_t kTextBytesMax = 4'096;
// Of the lines below an answer.
constexpr size_t kIndent = 7;
// A terminal so narrow is not wrapped for: every word would have its own line.
constexpr size_t kColumnsMin = 40;

std::string Clean(const std::string& text) { return CleanText(text, kTextBytesMax); }

// Returns the text as lines, each word whole, the later ones indented. Counts bytes: names that are
// not ASCII make lines a little shorter.
std::string Wrapped(size_t indent, std::string_view text, size_t columns) {
  std::string result(indent, ' ');
  if (columns < kColumnsMin) return result.append(text) + "\n";
  size_t used = indent;
  bool is_at_begin = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!is_at_begin && used + 1 + word.size() > columns) {
      result += "\n" + std::string(kIndent, ' ');
      used = kIndent;
      is_at_begin = true;
    }
    if (!is_at_begin) result += ' ';
    result += word;
    used += word.size() + (is_at_begin ? 0 : 1);
    is_at_begin = false;
  }
  return result + "\n";
}

// "2026-11-21 08:52:03.250Z".
std::string FormatMoment(uint64_t realtime_ns) {
  std::string text = FormatTime(realtime_ns);
  if (!text.ends_with('Z')) return text;
  text.pop_back();
  return fmt::format("{}.{:03}Z", text, realtime_ns / 1'000'000 % 1'000);
}

// Returns when the verdict began, and how long after the begin of what was judged.
std::string SinceText(const v1::Verdict& verdict, const v1::InsightReport& report) {
  std::string text = "since " + FormatMoment(verdict.since_ns());
  if (verdict.since_ns() > report.begin_ns() && report.begin_ns() != 0) {
    text += fmt::format(" ({} after the begin)",
                        FormatDuration(verdict.since_ns() - report.begin_ns()));
  }
  if (verdict.until_ns() > verdict.since_ns()) {
    text += fmt::format(" for {}", FormatDuration(verdict.until_ns() - verdict.since_ns()));
  }
  return text;
}

std::string RuledOutLine(const v1::Verdict& verdict) {
  std::string text;
  for (const v1::RuledOut& cause : verdict.ruled_out()) {
    text += text.empty() ? "ruled out: " : ", ";
    text += cause.ratio() == 0 ? fmt::format("{} ({})", Clean(cause.what()), Clean(cause.figure()))
                               : fmt::format("{} {:.2f}x", Clean(cause.what()), cause.ratio());
  }
  return text;
}

std::string FormatVerdict(const v1::Verdict& verdict, const v1::InsightReport& report,
                          size_t columns) {
  std::string text = Wrapped(0, Clean(verdict.text()), columns);
  if (verdict.since_ns() != 0) text += Wrapped(kIndent, SinceText(verdict, report), columns);
  if (!verdict.annotation().empty()) {
    text += Wrapped(kIndent, Clean(verdict.annotation()), columns);
  }
  if (!verdict.ruled_out().empty()) text += Wrapped(kIndent, RuledOutLine(verdict), columns);
  // Not wrapped: it is to be copied.
  if (!verdict.look().empty()) text += Wrapped(kIndent, "look: " + Clean(verdict.look()), 0);
  return text;
}

std::string FormatRefusal(const v1::InsightRefusal& refusal, size_t columns) {
  std::string text = Clean(refusal.text());
  if (refusal.begin_ns() != 0) {
    text += fmt::format(" (at {}", FormatMoment(refusal.begin_ns()));
    if (refusal.end_ns() > refusal.begin_ns()) {
      text += fmt::format(", {}", FormatDuration(refusal.end_ns() - refusal.begin_ns()));
    }
    text += ")";
  }
  return Wrapped(0, text, columns);
}

// Returns whether the stacks are of the job of the verdict's suspects, whose hang they show.
bool ShowsHang(const v1::StacksReport& report, const v1::Verdict& verdict) {
  const bool is_hang = verdict.kind() == v1::VERDICT_KIND_HANG_NOT_ENTERED ||
                       verdict.kind() == v1::VERDICT_KIND_HANG_INSIDE;
  return is_hang && (report.job().empty() || verdict.suspects().empty() ||
                     verdict.suspects(0).job() == report.job());
}

// Returns what two answers have in common if they say the same of the same cores: figures differ
// from second to second.
template <typename Cores>
std::string KeyOf(std::string_view kind, const std::string& role, const Cores& cores) {
  std::string key = fmt::format("{} {}", kind, role);
  for (const v1::InsightCore& core : cores) {
    key += fmt::format(" {}/{}/{}", core.instance_id(), core.pid(), core.nc_idx());
  }
  return key;
}

}  // namespace

std::string FormatInsight(const v1::InsightReport& report, size_t columns) {
  std::string text;
  std::vector<const v1::StacksReport*> stacks;
  for (const v1::StacksReport& of_job : report.stacks()) stacks.push_back(&of_job);
  for (const v1::Verdict& verdict : report.verdicts()) {
    text += FormatVerdict(verdict, report, columns);
    std::erase_if(stacks, [&](const v1::StacksReport* of_job) {
      if (!ShowsHang(*of_job, verdict)) return false;
      text += FormatStacks(*of_job, columns);
      return true;
    });
  }
  for (const v1::StacksReport* const of_job : stacks) text += FormatStacks(*of_job, columns);
  for (const v1::InsightRefusal& refusal : report.refusals()) {
    text += FormatRefusal(refusal, columns);
  }
  text += Wrapped(0, Clean(report.text()), columns);
  for (const std::string& warning : report.warnings()) {
    text += Wrapped(0, "note: " + Clean(warning), columns);
  }
  return text;
}

std::string FormatStacks(const v1::StacksReport& report, size_t columns) {
  const std::string pending =
      report.pending() == 0 ? "" : fmt::format(", {} have not answered yet", report.pending());
  std::string text = Wrapped(
      kIndent,
      fmt::format("stacks: {}{}, {}{} ({})", FormatCounted(report.members_size(), "worker"),
                  report.job().empty() ? "" : " of " + Clean(report.job()),
                  FormatMoment(report.asked_realtime_ns()), pending, Clean(report.reason())),
      columns);
  for (const std::string& line : report.lines()) text += Wrapped(kIndent, Clean(line), columns);
  if (!report.problem().empty()) {
    text += Wrapped(kIndent, "note: not stored: " + Clean(report.problem()), columns);
  }
  return text;
}

std::string FormatStackTree(const v1::StacksReport& report) {
  std::string text;
  for (const v1::StackNode& node : report.nodes()) {
    const std::string frame =
        node.function().empty() ? "(ends here)"
        : node.file().empty()   ? Clean(node.function())
                              : fmt::format("{} ({})", Clean(node.function()), Clean(node.file()));
    text += fmt::format("{:>6} {} {}{}\n", node.members_size(), node.is_minority() ? '*' : ' ',
                        std::string(std::min<size_t>(node.depth(), 64), ' '), frame);
  }
  if (report.nodes_left_out() != 0) {
    text += fmt::format("{} frames are left out\n", report.nodes_left_out());
  }
  return text;
}

ExitCode ExitCodeOf(const v1::InsightReport& report) {
  const bool is_whole =
      report.refusals().empty() && report.cores_judged() >= report.cores() && report.cores() > 0;
  return is_whole ? kExitDone : kExitIncomplete;
}

bool InsightChanges::IsSettling(const v1::InsightReport& report, uint64_t now_ns, size_t columns,
                                std::string& text) {
  const uint64_t since_ns = report.live_since_ns();
  if (live_since_ns_ != 0 && since_ns != 0 && since_ns != live_since_ns_) {
    settled_at_ns_ = since_ns + limits::kWatchWindowNs;
    text += FormatMoment(now_ns) + "\n" +
            Wrapped(0,
                    fmt::format("RESTARTED the aggregator has judged since {} only: what was named "
                                "before counts until it has judged for {} s",
                                FormatMoment(since_ns), limits::kWatchWindowNs / 1'000'000'000),
                    columns);
  }
  if (since_ns != 0) live_since_ns_ = since_ns;
  return report.end_ns() < settled_at_ns_;
}

std::string InsightChanges::Take(const v1::InsightReport& report, uint64_t now_ns, size_t columns) {
  std::map<std::string, std::string> present;
  std::string text;
  const bool is_settling = IsSettling(report, now_ns, columns, text);
  const auto add = [&](std::string key, const std::string& line, const std::string& whole) {
    if (!known_.contains(key) && !present.contains(key)) {
      text += FormatMoment(now_ns) + "\n" + whole;
    }
    present.emplace(std::move(key), line);
  };
  for (const v1::Verdict& verdict : report.verdicts()) {
    add(KeyOf(v1::VerdictKind_Name(verdict.kind()), verdict.phase() + verdict.role(),
              verdict.suspects()),
        Clean(verdict.text()), FormatVerdict(verdict, report, columns));
  }
  for (const v1::InsightRefusal& refusal : report.refusals()) {
    if (is_settling) break;
    add(KeyOf(refusal.reason(), "", refusal.cores()), Clean(refusal.text()),
        FormatRefusal(refusal, columns));
  }
  if (is_settling) present.merge(known_);
  for (const auto& [key, line] : known_) {
    if (present.contains(key)) continue;
    text += FormatMoment(now_ns) + "\n" + Wrapped(0, "ENDED " + line, columns);
  }
  if (is_first_) text += Wrapped(0, Clean(report.text()), columns);
  is_first_ = false;
  known_ = std::move(present);
  return text;
}

}  // namespace neurontrace::cli
