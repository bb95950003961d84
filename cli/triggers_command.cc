// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <sstream>
#include <string>

#include "base/standard_streams.h"
#include "cli/capture_view.h"
#include "cli/command.h"
#include "cli/text.h"
#include "cli/triggers_view.h"
#include "triggers/trigger_file.h"
#include "wire/trigger_messages.h"

namespace neurontrace::cli {
namespace {

struct TriggersOptions {
  std::string path;
  std::string name;
  std::string cause;
};

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
    Print(stderr, "neurontrace: {} made no capture: {}\n", options.name, reply.problem());
  } else {
    Print("{}\n", reply.capture_id());
    if (!context.quiet) {
      Print(stderr, "neurontrace captures watch {} follows it\n", reply.capture_id());
    }
  }
  return was_suppressed ? kExitFailed : kExitDone;
}

// Each line of the message as one of ours.
int FailLines(const absl::Status& status) {
  std::istringstream lines{std::string(status.message())};
  for (std::string line; std::getline(lines, line);) Print(stderr, "neurontrace: {}\n", line);
  return kExitFailed;
}

// Asks nobody: a file is looked at where it is.
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
    Print("{}{}: {}, nothing wrong\n", FormatRules(reply), path,
          FormatCounted(rules->size(), "rule"));
  }
  return kExitDone;
}

}  // namespace

void AddTriggersCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<TriggersOptions>();
  CLI::App* command =
      app.add_subcommand("triggers", "Rules that begin captures by themselves, and their results");
  command->footer(
      "Examples:\n"
      "  neurontrace triggers\n"
      "  neurontrace triggers check triggers.toml\n"
      "  neurontrace triggers fire by-hand --cause \"loss went up at step 4711\"\n\n"
      "Exit codes: 0 done (fire: a capture has begun), 1 failed, the trigger is suppressed, or "
      "something is wrong with the file.");
  command->require_subcommand(0, 1);
  command->add_subcommand("list", "All rules (the default)");
  CLI::App* fire = command->add_subcommand("fire", "Fire one now, and print its capture's id");
  fire->add_option("NAME", options->name, "The rule's name")->required();
  fire->add_option("--cause", options->cause, "Why, for those who find the capture");
  CLI::App* check = command->add_subcommand("check", "Say what is wrong with a file of rules");
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
