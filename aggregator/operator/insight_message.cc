// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/insight_message.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <string_view>
#include <vector>

#include "aggregator/insight/verdict_text.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

// Steps that a command exports from the begin of a verdict on: enough to compare, little to wait
// for.
constexpr uint64_t kStepsShown = 8;
// Exported before and after the begin of what has no step, such as a hang.
constexpr uint64_t kAroundNs = kNsPerSecond;
// Ranks and instances that a command names; a longer list is that of everybody.
constexpr size_t kNamedInCommandMax = 16;

v1::InsightCore ToMessage(const InsightCore& core) {
  v1::InsightCore message;
  if (core.has_job_name) message.set_job(core.job);
  message.set_instance_id(core.instance_id);
  // The upper half tells processes with one id apart, see InsightFeed.
  message.set_pid(core.process & UINT32_MAX);
  message.set_worker_gid(core.worker_gid);
  message.set_nc_idx(core.nc_idx);
  return message;
}

// Adds the first of the cores, and returns how many there are.
template <typename Cores>
uint32_t AddCores(const std::vector<uint32_t>& indexes, std::span<const InsightCore> cores,
                  Cores& messages) {
  for (size_t i = 0; i < std::min(indexes.size(), kInsightCoresNamed); ++i) {
    assert(indexes[i] < cores.size());
    *messages.Add() = ToMessage(cores[indexes[i]]);
  }
  return static_cast<uint32_t>(indexes.size());
}

// Returns the text as one word of a shell. Instances are named by outsiders.
std::string ShellWord(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@/";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(text);
  }
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// Returns whether the cores are of several jobs. Then a rank alone selects nobody in particular.
bool HasSeveralJobs(std::span<const InsightCore> cores) {
  return std::ranges::any_of(
      cores, [&](const InsightCore& core) { return core.job != cores.front().job; });
}

// Returns the options that select the suspects: by rank, or by instance if a rank is unknown, and
// by job if there are several. Empty if there are none, or too many for a line.
std::string SelectionOf(const Verdict& verdict, std::span<const InsightCore> cores) {
  std::vector<std::string> gids;
  std::vector<std::string> instances;
  bool has_ranks = true;
  for (const uint32_t index : verdict.suspects) {
    const InsightCore& core = cores[index];
    has_ranks &= core.worker_gid >= 0;
    gids.push_back(fmt::format("{}", core.worker_gid));
    if (std::ranges::count(instances, core.instance_id) == 0) {
      if (instances.size() > kNamedInCommandMax) break;
      instances.push_back(core.instance_id);
    }
  }
  const bool is_by_rank = has_ranks && gids.size() <= kNamedInCommandMax;
  if (verdict.suspects.empty() || (!is_by_rank && instances.size() > kNamedInCommandMax)) return "";
  const std::string by_instance =
      fmt::format(" --instance {}", ShellWord(fmt::format("{}", fmt::join(instances, ","))));
  if (!is_by_rank) return by_instance;
  std::string selection = fmt::format(" --worker-gid {}", fmt::join(gids, ","));
  if (!HasSeveralJobs(cores)) return selection;
  const InsightCore& first = cores[verdict.suspects.front()];
  // A job without a name cannot be selected.
  const bool has_name = first.has_job_name && !first.job.empty();
  return selection + (has_name ? fmt::format(" --job {}", ShellWord(first.job)) : by_instance);
}

// Returns the time as an edge of an export's window: "4.203s" after the first event, in whole
// microseconds.
std::string Edge(uint64_t ns, uint64_t first_event_ns, bool rounds_up) {
  if (first_event_ns == 0) return fmt::format("{}", ns);
  const uint64_t us =
      AddSaturating(SubtractSaturating(ns, first_event_ns), rounds_up ? 999 : 0) / 1'000;
  std::string text = fmt::format("{}.{:06}", us / 1'000'000, us % 1'000'000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + "s";
}

std::string LookCommand(const Verdict& verdict, std::span<const InsightCore> cores,
                        const ExportedCapture& capture) {
  const uint64_t before_ns = verdict.step_ns == 0 ? kAroundNs : verdict.step_ns;
  const uint64_t from_ns = SubtractSaturating(verdict.since_ns, before_ns);
  const uint64_t shown_ns = verdict.step_ns == 0 ? kAroundNs : verdict.step_ns * kStepsShown;
  const uint64_t to_ns = AddSaturating(verdict.since_ns, shown_ns);
  return fmt::format("neurontrace export {}{} --from {} --to {}", capture.id,
                     SelectionOf(verdict, cores), Edge(from_ns, capture.first_event_ns, false),
                     Edge(to_ns, capture.first_event_ns, true));
}

v1::Verdict ToMessage(const Verdict& verdict, std::span<const InsightCore> cores,
                      const ExportedCapture& capture) {
  v1::Verdict message;
  message.set_kind(static_cast<v1::VerdictKind>(verdict.kind));
  message.set_suspects_total(AddCores(verdict.suspects, cores, *message.mutable_suspects()));
  message.set_phase(InsightPhaseName(verdict.phase));
  message.set_role(verdict.role);
  message.set_peers(verdict.peers);
  message.set_ratio(verdict.ratio);
  message.set_z(verdict.z);
  message.set_executions(verdict.executions);
  message.set_judged(verdict.judged);
  message.set_since_ns(verdict.since_ns);
  message.set_until_ns(verdict.until_ns);
  message.set_cost_ns(verdict.cost_ns);
  message.set_step_ns(verdict.step_ns);
  message.set_total_cost_ns(verdict.total_cost_ns);
  message.set_waiting(verdict.waiting);
  message.set_exec_id(verdict.exec_id);
  message.set_op_id(verdict.op_id);
  for (const RuledOut& cause : verdict.ruled_out) {
    v1::RuledOut& excluded = *message.add_ruled_out();
    excluded.set_what(cause.what);
    excluded.set_ratio(cause.ratio);
    excluded.set_figure(cause.figure);
  }
  for (const VerdictModel& model : verdict.also) {
    v1::VerdictModel& other = *message.add_also();
    other.set_role(model.role);
    other.set_ratio(model.ratio);
    other.set_z(model.z);
    other.set_executions(model.executions);
    other.set_judged(model.judged);
    other.set_since_ns(model.since_ns);
    other.set_until_ns(model.until_ns);
  }
  message.set_text(VerdictText(verdict, cores));
  if (!capture.id.empty()) message.set_look(LookCommand(verdict, cores, capture));
  return message;
}

v1::InsightRefusal ToMessage(const Refusal& refusal, std::span<const InsightCore> cores) {
  v1::InsightRefusal message;
  message.set_reason(RefusalReasonName(refusal.reason));
  message.set_cores_total(AddCores(refusal.cores, cores, *message.mutable_cores()));
  message.set_begin_ns(refusal.begin_ns);
  message.set_end_ns(refusal.end_ns);
  message.set_refused_ns(refusal.refused_ns);
  message.set_judged_ns(refusal.judged_ns);
  message.set_count(refusal.count);
  message.set_missing(refusal.missing);
  message.set_text(RefusalText(refusal, cores));
  return message;
}

}  // namespace

v1::InsightReport ToMessage(const InsightReport& report, std::span<const InsightCore> cores,
                            const ExportedCapture& capture) {
  v1::InsightReport message;
  for (const Verdict& verdict : report.verdicts) {
    *message.add_verdicts() = ToMessage(verdict, cores, capture);
  }
  for (const Refusal& refusal : report.refusals) {
    *message.add_refusals() = ToMessage(refusal, cores);
  }
  message.set_cores(report.cores);
  message.set_cores_judged(report.cores_judged);
  message.set_executions(report.executions);
  message.set_step_ns(report.step_ns);
  message.set_exposed_wait_ns(report.exposed_wait_ns);
  message.set_explained_wait_ns(report.explained_wait_ns);
  message.set_below_cost(report.is_below_cost);
  message.set_rule_version(std::string(kInsightRuleVersion));
  message.set_text(ReportText(report, cores));
  return message;
}

}  // namespace neurontrace
