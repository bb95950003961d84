// SPDX-License-Identifier: Apache-2.0
#include "cli/triggers_view.h"

#include <fmt/format.h>

#include <vector>

#include "cli/text.h"

namespace neurontrace::cli {
namespace {

// "last 20.0 s, else 5.0 s after": what it records.
std::string FormatTaken(const v1::TriggerRule& rule) {
  if (rule.last_ns() == 0) return FormatDuration(rule.duration_ns()) + " after";
  const std::string last = "last " + FormatDuration(rule.last_ns());
  return rule.duration_ns() == 0
             ? last
             : fmt::format("{}, else {} after", last, FormatDuration(rule.duration_ns()));
}

std::string FormatLimits(const v1::TriggerRule& rule) {
  std::string text;
  if (rule.cool_down_ns() != 0) text = FormatDuration(rule.cool_down_ns()) + " apart";
  if (rule.per_hour_max() != 0) {
    text += fmt::format("{}{}/h", text.empty() ? "" : ", ", rule.per_hour_max());
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::string FormatCondition(const v1::TriggerRule& rule) {
  switch (rule.kind()) {
    case v1::TRIGGER_KIND_SLOW_EXECUTION:
      return fmt::format("an execution over {:g} x the median", rule.times_median());
    case v1::TRIGGER_KIND_SILENT_CORE:
      return fmt::format("a core silent for {}, others not", FormatDuration(rule.silent_ns()));
    case v1::TRIGGER_KIND_WORKER_DIED:
      return "a worker dies";
    case v1::TRIGGER_KIND_POST:
      return "when it is asked for";
    default:
      return "of a kind that this version does not know";
  }
}

std::string FormatRules(const v1::ListTriggersReply& reply) {
  std::vector<std::vector<std::string>> rows;
  for (const v1::Trigger& trigger : reply.triggers()) {
    const v1::TriggerRule& rule = trigger.rule();
    rows.push_back({rule.name(), rule.job().empty() ? "all" : rule.job(), FormatCondition(rule),
                    FormatTaken(rule), FormatLimits(rule)});
  }
  return rows.empty() ? "" : FormatTable({"TRIGGER", "JOB", "FIRES AT", "RECORDS", "LIMITS"}, rows);
}

std::string FormatTriggers(const v1::ListTriggersReply& reply) {
  std::string out;
  if (!reply.problem().empty()) {
    out += fmt::format("warning: {}: {} (the rules below are those before)\n",
                       reply.file().empty() ? "the rules" : reply.file(), reply.problem());
  }
  if (reply.triggers().empty()) {
    return out + "No trigger. The aggregator takes rules from the file named with --triggers.\n";
  }
  std::vector<std::vector<std::string>> rows;
  std::string last;
  for (const v1::Trigger& trigger : reply.triggers()) {
    const v1::TriggerRule& rule = trigger.rule();
    rows.push_back({rule.name(), rule.job().empty() ? "all" : rule.job(), FormatCondition(rule),
                    FormatTaken(rule), FormatLimits(rule), FormatCount(trigger.fired()),
                    FormatCount(trigger.suppressed()), FormatTime(trigger.last_fired_realtime_ns()),
                    trigger.last_capture_id().empty() ? "-" : trigger.last_capture_id()});
    if (!trigger.last_cause().empty()) {
      last += fmt::format("{} fired last: {}\n", rule.name(), trigger.last_cause());
    }
    if (!trigger.last_problem().empty()) {
      last += fmt::format("{} made no capture: {}\n", rule.name(), trigger.last_problem());
    }
  }
  out += FormatTable(
      {"TRIGGER", "JOB", "FIRES AT", "RECORDS", "LIMITS", "FIRED", "SUPPRESSED", "LAST", "CAPTURE"},
      rows);
  return last.empty() ? out : out + "\n" + last;
}

}  // namespace neurontrace::cli
