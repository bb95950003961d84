// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>

#include "base/address.h"
#include "base/standard_streams.h"
#include "cli/capture_view.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/text.h"

namespace neurontrace::cli {
namespace {

// Somebody waits with a finger on a key.
constexpr uint32_t kAnswerMs = 700;

std::vector<Candidate> CaptureCandidates(Context& context) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::ListCapturesReply reply;
  std::vector<Candidate> candidates;
  if (!context.stub().ListCaptures(&call, {}, &reply).ok()) return candidates;
  for (auto it = reply.captures().rbegin(); it != reply.captures().rend(); ++it) {
    candidates.push_back(
        {it->capture_id(), fmt::format("{}, {}{}{}", CaptureStateName(it->state()),
                                       FormatTime(it->started_realtime_ns()),
                                       it->spec().name().empty() ? "" : ", ", it->spec().name())});
  }
  return candidates;
}

std::vector<Candidate> InstanceCandidates(Context& context) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::ListAgentsReply reply;
  std::vector<Candidate> candidates;
  if (!context.stub().ListAgents(&call, {}, &reply).ok()) return candidates;
  for (const v1::Agent& agent : reply.agents()) {
    candidates.push_back({agent.hello().instance_id(), agent.hello().host_name()});
  }
  return candidates;
}

// What was typed already says which aggregator is asked; the parser is not run for half a line.
void TakeAggregator(Context& context, const std::vector<std::string>& words) {
  const char* const environment = getenv("NEURONTRACE_AGGREGATOR");
  if (environment != nullptr && *environment != '\0') context.aggregator = environment;
  if (const std::string named = AggregatorIn(words); !named.empty()) context.aggregator = named;
  context.connect_timeout_ms = kAnswerMs;
  const std::pair<const char*, std::string&> files[] = {
      {"NEURONTRACE_TLS_CA", context.security.ca},
      {"NEURONTRACE_TLS_CERT", context.security.cert},
      {"NEURONTRACE_TLS_KEY", context.security.key},
      {"NEURONTRACE_TLS_SERVER_NAME", context.security.server_name},
      {"NEURONTRACE_TOKEN_FILE", context.security.token_file}};
  for (const auto& [name, path] : files) {
    if (const char* const value = getenv(name); value != nullptr) path = value;
  }
}

// Nothing is asked of an aggregator that a command would not speak to.
bool MayAsk(const Context& context) {
  return CheckPeerAddress(context.aggregator).empty() &&
         CheckSecurity(context.security, context.aggregator, ChannelSide::kClient).ok();
}

const char* KindName(CompletionKind kind) {
  switch (kind) {
    case CompletionKind::kFiles:
      return "files";
    case CompletionKind::kDirectories:
      return "directories";
    case CompletionKind::kCommands:
      return "commands";
    default:
      return "nothing";
  }
}

}  // namespace

int PrintCompletions(const CLI::App& app, Context& context, const std::vector<std::string>& words) {
  TakeAggregator(context, words);
  const Completions completions = Complete(
      app, words,
      {.captures =
           [&context] {
             return MayAsk(context) ? CaptureCandidates(context) : std::vector<Candidate>();
           },
       .instances =
           [&context] {
             return MayAsk(context) ? InstanceCandidates(context) : std::vector<Candidate>();
           }});
  for (const Candidate& candidate : completions.candidates) {
    Print("{}\t{}\n", candidate.text, candidate.description);
  }
  Print(":{}\n", KindName(completions.kind));
  return kExitDone;
}

void AddCompletionCommand(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for a shell");
  command->require_subcommand(1);
  constexpr char kFooter[] =
      "Examples:\n"
      "  eval \"$(neurontrace completion bash)\"                    # in ~/.bashrc\n"
      "  eval \"$(neurontrace completion zsh)\"                     # in ~/.zshrc, after compinit\n"
      "  neurontrace completion fish | source                     # in "
      "~/.config/fish/config.fish\n\n"
      "Capture ids and instances are asked for at the aggregator as you type.";
  command->footer(kFooter);
  for (const char* const shell : {"bash", "zsh", "fish"}) {
    command->add_subcommand(shell, fmt::format("For {}", shell))->footer(kFooter);
  }
  command->callback([command, &run] {
    const std::string shell = command->get_subcommands().front()->get_name();
    run = [shell] {
      Print("{}", CompletionScript(shell));
      return kExitDone;
    };
  });
}

}  // namespace neurontrace::cli
