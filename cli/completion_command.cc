// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/standard_streams.h"
#include "cli/command.h"
#include "cli/completion.h"

namespace neurontrace::cli {
namespace {

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

int PrintCompletions(const CLI::App& app, const std::vector<std::string>& words) {
  const Completions completions = Complete(app, words);
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
      "~/.config/fish/config.fish";
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
