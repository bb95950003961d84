// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cli/capture_view.h"
#include "cli/command.h"
#include "cli/text.h"
#include "lib/base/standard_streams.h"
#include "lib/triggers/trigger_file.h"
#include "lib/wire/trigger_messages.h"

namespace neurontrace::cli {
namespace {

// Returns what a rule records: "last 20.0 s, else 5.0 s after". The second part applies to workers
// without a flight recorder.
std::string FormatTaken(const v1::TriggerRule& rule) {
  if (rule.last_ns() == 0) return FormatDuration(rule.duration_ns()) + " after";
  const std::string last = "last " + FormatDuration(rule.last_ns());
  return rule.duration_ns() == 0
             ? last
             : fmt::format("{}, else {} after", last, FormatDuration(rule.duration_ns()));
}

// Returns how often a rule may fire: "60.0 s apart, 4/h".
std::string FormatLimits(const v1::TriggerRule& rule) {
  std::string text;
  if (rule.cool_down_ns() != 0) text = FormatDuration(rule.cool_down_ns()) + " apart";
  if (rule.per_hour_max() != 0) {
    text += fmt::format("{}{}/h", text.empty() ? "" : ", ", rule.per_hour_max());
  }
  return text.empty() ? "none" : text;
}

// Returns when a rule fires, such as "a core is silent for 30.0 s and others are not".
std::string FormatCondition(const v1::TriggerRule& rule) {
  switch (rule.kind()) {
    case v1::TRIGGER_KIND_SLOW_EXECUTION:
      return fmt::format("an execution takes over {:g} x the median", rule.times_median());
    case v1::TRIGGER_KIND_SILENT_CORE:
      return fmt::format("a core is silent for {} and others are not",
                         FormatDuration(rule.silent_ns()));
    case v1::TRIGGER_KIND_WORKER_DIED:
      return "a worker dies";
    case v1::TRIGGER_KIND_POST:
      return "when requested";
    default:
      return "of a kind unknown to this version";
  }
}

// Returns a table of the rules alone: when each fires, and what it records. "" without rules.
std::string FormatRules(const v1::ListTriggersReply& reply) {
  std::vector<std::vector<std::string>> rows;
  for (const v1::Trigger& trigger : reply.triggers()) {
    const v1::TriggerRule& rule = trigger.rule();
    rows.push_back({rule.name(), rule.job().empty() ? "all" : rule.job(), FormatCondition(rule),
                    FormatTaken(rule), FormatLimits(rule)});
  }
  return rows.empty() ? "" : FormatTable({"TRIGGER", "JOB", "FIRES AT", "RECORDS", "LIMITS"}, rows);
}

// Returns the rules with their results, and the error of their file if its newest version is
// invalid. Pure.
std::string FormatTriggers(const v1::ListTriggersReply& reply) {
  std::string out;
  if (!reply.problem().empty()) {
    out += fmt::format("warning: {}: {} (the previous rules, below, stay in effect)\n",
                       reply.file().empty() ? "the rules" : reply.file(), reply.problem());
  }
  if (reply.triggers().empty()) {
    return out + "No triggers. The aggregator reads rules from the file in --triggers.\n";
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
      last += fmt::format("{} started no capture: {}\n", rule.name(), trigger.last_problem());
    }
  }
  out += FormatTable(
      {"TRIGGER", "JOB", "FIRES AT", "RECORDS", "LIMITS", "FIRED", "SUPPRESSED", "LAST", "CAPTURE"},
      rows);
  return last.empty() ? out : out + "\n" + last;
}

// Values of the options: a file for `check`, the others for `fire`.
struct TriggersOptions {
  std::string path;
  std::string name;
  std::string cause;
};

// Prints all rules. Returns kExitDone even if there are none.
int ListTriggers(Context& context) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::ListTriggersReply reply;
  if (const auto status = context.stub().ListTriggers(&call, {}, &reply); !status.ok()) {
    return Fail(context, status);
  }
  Print("{}", context.json ? FormatJson(reply) : FormatTriggers(reply));
  return kExitDone;
}

// Fires a trigger by hand and prints the id of its capture. Returns kExitFailed if its limits
// suppress it.
int FireTrigger(Context& context, const TriggersOptions& options) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::FireTriggerRequest request;
  request.set_name(options.name);
  request.set_cause(options.cause);
  v1::FireTriggerReply reply;
  if (const auto status = context.stub().FireTrigger(&call, request, &reply); !status.ok()) {
    return Fail(context, status);
  }
  const bool was_suppressed = reply.capture_id().empty();
  if (context.json) {
    Print("{}", FormatJson(reply));
  } else if (was_suppressed) {
    Print(stderr, "neurontrace: {} started no capture: {}\n", options.name, reply.problem());
  } else {
    Print("{}\n", reply.capture_id());
    if (!context.quiet) {
      Print(stderr, "neurontrace captures watch {} follows it\n", reply.capture_id());
    }
  }
  return was_suppressed ? kExitFailed : kExitDone;
}

// Prints each line of a message with the program's name, as a file may have several errors. Returns
// kExitFailed.
int FailLines(const absl::Status& status) {
  std::istringstream lines{std::string(status.message())};
  for (std::string line; std::getline(lines, line);) Print(stderr, "neurontrace: {}\n", line);
  return kExitFailed;
}

// Checks a file of this machine without asking the aggregator. JSON has the form of ListTriggers,
// so that scripts can treat both alike.
int CheckTriggers(const Context& context, const std::string& path) {
  v1::ListTriggersReply reply;
  reply.set_file(path);
  const auto rules = ReadTriggerFile(path);
  if (!rules.ok()) {
    reply.set_problem(std::string(rules.status().message()));
    if (!context.json) return FailLines(rules.status());
    Print("{}", FormatJson(reply));
    return kExitFailed;
  }
  for (const TriggerRule& rule : *rules) ToProto(rule, reply.add_triggers()->mutable_rule());
  if (context.json) {
    Print("{}", FormatJson(reply));
  } else {
    Print("{}{}: {}, no problems\n", FormatRules(reply), path,
          FormatCounted(rules->size(), "rule"));
  }
  return kExitDone;
}

}  // namespace

void AddTriggersCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<TriggersOptions>();
  CLI::App* command = app.add_subcommand(
      "triggers", "Show the rules that start captures automatically, and their results");
  command->footer(
      "Examples:\n"
      "  neurontrace triggers\n"
      "  neurontrace triggers check triggers.toml\n"
      "  neurontrace triggers fire by-hand --cause \"loss went up at step 4711\"\n\n"
      "Exit codes: 0 done (fire: a capture has started), 1 failed, the trigger is suppressed, or "
      "the file has an error.");
  command->require_subcommand(0, 1);
  command->add_subcommand("list", "List all rules (the default)");
  CLI::App* fire = command->add_subcommand("fire", "Fire a trigger now and print its capture's id");
  fire->add_option("NAME", options->name, "The rule's name")->required();
  fire->add_option("--cause", options->cause, "Reason, stored with the capture");
  CLI::App* check = command->add_subcommand("check", "Check a file of rules and print its errors");
  check->add_option("FILE", options->path, "The file")->required();
  command->callback([&context, &run, fire, check, options] {
    if (fire->parsed()) {
      run = [&context, options] { return FireTrigger(context, *options); };
    } else if (check->parsed()) {
      run = [&context, options] { return CheckTriggers(context, options->path); };
    } else {
      run = [&context] { return ListTriggers(context); };
    }
  });
}

}  // namespace neurontrace::cli
