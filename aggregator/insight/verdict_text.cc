// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/verdict_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "lib/base/clean_text.h"
#include "lib/base/number_ranges.h"

namespace neurontrace {
namespace {

// Of a sentence of this program.
constexpr size_t kSentenceBytesMax = 400;
// Models besides the first in one text; the report has all of them.
constexpr size_t kOtherModelsMax = 4;

std::string Clean(std::string_view text) { return CleanText(text, kInsightNameBytesMax); }

// "850 us", "118 ms", "2.31 s": three digits.
std::string Duration(uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000'000) return fmt::format("{:.3g} us", value / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.3g} ms", value / 1e6);
  return fmt::format("{:.2f} s", value / 1e9);
}

std::string Counted(uint64_t count, std::string_view noun) {
  const std::string digits = fmt::format("{}", count);
  std::string number;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) number += ',';
    number += digits[i];
  }
  return fmt::format("{} {}{}", number, noun, count == 1 ? "" : "s");
}

std::string OneCore(const InsightCore& core) {
  const std::string place = fmt::format("{} nc {}", Clean(core.instance_id), core.nc_idx);
  if (core.worker_gid < 0) return place;
  return fmt::format("rank {} ({})", core.worker_gid, place);
}

// Names the cores, and the instance if it is the only one.
std::string ManyCores(std::span<const uint32_t> indices, std::span<const InsightCore> cores) {
  std::vector<uint32_t> known;
  std::copy_if(indices.begin(), indices.end(), std::back_inserter(known),
               [&](uint32_t core) { return core < cores.size(); });
  if (known.empty()) return Counted(indices.size(), "core");
  if (known.size() == 1) return OneCore(cores[known.front()]);
  const std::string& instance = cores[known.front()].instance_id;
  std::vector<int64_t> ranks;
  bool is_one_instance = true;
  for (const uint32_t core : known) {
    if (cores[core].worker_gid >= 0) ranks.push_back(cores[core].worker_gid);
    is_one_instance = is_one_instance && cores[core].instance_id == instance;
  }
  const bool have_ranks = ranks.size() == known.size();
  std::ranges::sort(ranks);
  // Two cores can claim one rank.
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string text = have_ranks ? "ranks " + FormatRanges(FindRanges(ranks), kInsightRangesMax)
                                : Counted(known.size(), "core");
  if (is_one_instance) text += fmt::format(" of {}", Clean(instance));
  return text;
}

std::string_view WorkOf(InsightPhase phase) {
  switch (phase) {
    case InsightPhase::kSubmit:
      return "submitting executions";
    case InsightPhase::kPre:
      return "preparing executions";
    case InsightPhase::kDevice:
      return "device work";
    case InsightPhase::kWait:
      return "waiting";
    case InsightPhase::kTransfer:
      return "transfer";
    case InsightPhase::kPost:
      return "completing executions";
    case InsightPhase::kGap:
      return "time between executions";
  }
  return "work";
}

// "collective op 17 of execution 3".
std::string Meeting(const Verdict& verdict) {
  std::string text =
      verdict.is_barrier ? "a barrier" : fmt::format("collective op {}", verdict.op_id);
  if (verdict.exec_id != 0) text += fmt::format(" of execution {}", verdict.exec_id);
  return text;
}

// With the sum over all steps if it is known.
std::string Cost(const Verdict& verdict) {
  std::string text =
      fmt::format("costs {} of a {} step", Duration(verdict.cost_ns), Duration(verdict.step_ns));
  if (verdict.total_cost_ns > 0)
    text += fmt::format(", {} in all", Duration(verdict.total_cost_ns));
  return text;
}

std::string Waiting(const Verdict& verdict) {
  if (verdict.waiting == 0) return {};
  return fmt::format("; {} {} in {}", Counted(verdict.waiting, "core"),
                     verdict.waiting == 1 ? "waits" : "wait", Meeting(verdict));
}

std::string RolePhrase(const Verdict& verdict) {
  return verdict.role.empty() ? std::string() : fmt::format(" of {}", Clean(verdict.role));
}

// "; also in decode.neff: 46 of 46 executions, 1.38 times".
std::string OtherModels(const Verdict& verdict) {
  std::string text;
  for (size_t i = 0; i < std::min(verdict.also.size(), kOtherModelsMax); ++i) {
    const VerdictModel& model = verdict.also[i];
    text += fmt::format("; also in {}: {} of {} executions, {:.2f} times", Clean(model.role),
                        model.executions, model.judged, model.ratio);
  }
  if (verdict.also.size() > kOtherModelsMax) {
    text +=
        fmt::format("; and in {}", Counted(verdict.also.size() - kOtherModelsMax, "other model"));
  }
  return text;
}

// The score z is not in the text: a reader cannot tell what 41 means, and no verdict has a low one.
std::string SlowText(const Verdict& verdict, std::string_view who, std::string_view cause) {
  return fmt::format(
      "SLOW {}: {}, {}{}: own work {:.2f} times the median of {} {}, in {} of {} executions; "
      "{}{}{}",
      VerdictKindName(verdict.kind), who, cause, RolePhrase(verdict), verdict.ratio,
      verdict.suspects.size() == 1 ? "its" : "their", Counted(verdict.peers, "peer"),
      verdict.executions, verdict.judged, Cost(verdict), Waiting(verdict), OtherModels(verdict));
}

// Returns " (2 lost events)"; empty if there is no count, or `missing` has it.
std::string CountText(const Refusal& refusal) {
  if (refusal.count == 0) return "";
  switch (refusal.reason) {
    case RefusalReason::kCoverage:
      return "";
    case RefusalReason::kLosses:
      return fmt::format(" ({})", Counted(refusal.count, "lost event"));
    case RefusalReason::kTooShort:
    case RefusalReason::kContradiction:
      return fmt::format(" ({})", Counted(refusal.count, "execution"));
    default:
      return fmt::format(" ({})", Counted(refusal.count, "case"));
  }
}

std::string HangText(const Verdict& verdict, std::string_view who, std::string_view what) {
  const std::string waiting =
      verdict.waiting == 0 ? std::string()
                           : fmt::format("; {} inside", Counted(verdict.waiting, "other core"));
  return fmt::format("HUNG {}: {} {} {} for {}{}", VerdictKindName(verdict.kind), who, what,
                     Meeting(verdict), Duration(verdict.cost_ns), waiting);
}

}  // namespace

std::string ShortDuration(uint64_t ns) { return Duration(ns); }

std::string VerdictKey(const Verdict& verdict, std::span<const InsightCore> cores) {
  std::string key = VerdictKindName(verdict.kind);
  if (verdict.suspects.empty()) return fmt::format("{} {}", key, verdict.role);
  const InsightCore& first = cores[verdict.suspects.front()];
  key += " " + first.instance_id;
  if (verdict.kind == VerdictKind::kSlowHost) return key;
  key += fmt::format(" {}", first.process);
  const bool is_of_core = verdict.kind == VerdictKind::kSlowCore ||
                          verdict.kind == VerdictKind::kSlowCollective ||
                          verdict.kind == VerdictKind::kDeviceError;
  return is_of_core ? fmt::format("{} {} {}", key, first.nc_idx, verdict.op_id) : key;
}

std::string VerdictText(const Verdict& verdict, std::span<const InsightCore> cores) {
  const std::string who = ManyCores(verdict.suspects, cores);
  switch (verdict.kind) {
    case VerdictKind::kSlowCore:
    case VerdictKind::kSlowHost:
    case VerdictKind::kSlowProcess:
      return SlowText(verdict, who, WorkOf(verdict.phase));
    case VerdictKind::kInputStall:
      return SlowText(verdict, who, "reading and writing tensors between executions");
    case VerdictKind::kMemoryStall:
      return SlowText(verdict, who, "allocations and DMA between executions");
    case VerdictKind::kHostCode:
      return SlowText(verdict, who, "the program's own code between executions");
    case VerdictKind::kSlowCollective:
      return fmt::format(
          "SLOW slow-collective: {} among {} transfers {:.2f} times as long as before; {}",
          Meeting(verdict), who, verdict.ratio, Cost(verdict));
    case VerdictKind::kUnevenRole:
      return fmt::format(
          "UNEVEN uneven-role: every core of {} has {:.2f} times the work of the other roles; {}; "
          "{} wait; no rank is at fault",
          Clean(verdict.role), verdict.ratio, Cost(verdict), Counted(verdict.waiting, "core"));
    case VerdictKind::kUnevenData:
      return fmt::format(
          "UNEVEN uneven-data: the work{} differs by {:.1f} % between cores of the same execution, "
          "and a different core is last each time; {}; no rank is at fault",
          RolePhrase(verdict), (verdict.ratio - 1) * 100, Cost(verdict));
    case VerdictKind::kHangNotEntered:
      return HangText(verdict, who, "did not enter");
    case VerdictKind::kHangInside:
      return HangText(verdict, who, "did not leave");
    case VerdictKind::kDeadWorker:
      return HangText(verdict, who, "ended without completing");
    case VerdictKind::kDeviceError:
      return HangText(verdict, who, "reported a device error and did not complete");
  }
  return fmt::format("{}: {}", VerdictKindName(verdict.kind), who);
}

std::string RuledOutText(const Verdict& verdict) {
  std::string text;
  for (const RuledOut& other : verdict.ruled_out) {
    if (!text.empty()) text += "; ";
    text += other.ratio == 0 ? fmt::format("{} ({})", Clean(other.what), Clean(other.figure))
                             : fmt::format("{} {:.2f}x", Clean(other.what), other.ratio);
  }
  return text.empty() ? text : "ruled out: " + text;
}

std::string RefusalText(const Refusal& refusal, std::span<const InsightCore> cores) {
  std::string text = fmt::format("REFUSED {}", RefusalReasonName(refusal.reason));
  if (!refusal.cores.empty()) text += fmt::format(": {}", ManyCores(refusal.cores, cores));
  text += CountText(refusal);
  if (refusal.refused_ns > 0) {
    text += fmt::format(", {} of {} not judged", Duration(refusal.refused_ns),
                        Duration(refusal.judged_ns));
  }
  return text + ": " + CleanText(refusal.missing, kSentenceBytesMax);
}

std::string ReportText(const InsightReport& report, std::span<const InsightCore>) {
  const std::string judged =
      fmt::format("{} of {} judged in {}", report.cores_judged, Counted(report.cores, "core"),
                  Counted(report.executions, "execution"));
  if (!report.verdicts.empty())
    return fmt::format("{}, {}; {}", Counted(report.verdicts.size(), "verdict"),
                       Counted(report.refusals.size(), "refusal"), judged);
  if (report.cores_judged == 0) return fmt::format("Nothing was judged; {}", judged);
  const std::string wait = fmt::format("wait {} of a {} step", Duration(report.exposed_wait_ns),
                                       Duration(report.step_ns));
  // They may wait for a rank without any events.
  const bool is_partial = std::ranges::any_of(report.refusals, [](const Refusal& refusal) {
    return refusal.reason == RefusalReason::kCoverage;
  });
  const std::string_view nobody =
      is_partial ? "Nobody to name among the cores that were read" : "Nobody to name";
  if (report.is_below_cost)
    return fmt::format("{}: cores {}, less than 5 % or 1 ms; {}", nobody, wait, judged);
  return fmt::format("{}: cores {}, and nobody's own work explains it; {}", nobody, wait, judged);
}

}  // namespace neurontrace
