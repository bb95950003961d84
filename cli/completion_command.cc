// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/command.h"

namespace neurontrace::cli {
namespace {

// The words that may follow a command: its subcommands and its long options.
std::string WordsOf(const CLI::App& command) {
  std::string words;
  for (const CLI::App* child : command.get_subcommands([](const CLI::App*) { return true; })) {
    words += child->get_name() + " ";
  }
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
  }
  if (!words.empty()) words.pop_back();
  return words;
}

void AddCases(const CLI::App& command, const std::string& path, std::string& cases) {
  cases += fmt::format("    '{}') words='{}' ;;\n", path, WordsOf(command));
  for (const CLI::App* child : command.get_subcommands([](const CLI::App*) { return true; })) {
    AddCases(*child, path.empty() ? child->get_name() : path + " " + child->get_name(), cases);
  }
}

// Made from the parser itself, so that it never lags behind the options.
std::string BashScript(const CLI::App& app) {
  std::string cases;
  AddCases(app, "", cases);
  return fmt::format(
      "# bash completion for neurontrace: eval \"$(neurontrace completion bash)\"\n"
      "_neurontrace() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} path='' "
      "words='' i\n"
      "  case $previous in\n"
      "    -o|--out) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
      "    --output) COMPREPLY=($(compgen -W 'table json' -- \"$word\")); return ;;\n"
      "    --format) COMPREPLY=($(compgen -W 'perfetto json events' -- \"$word\")); return ;;\n"
      "  esac\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case ${{COMP_WORDS[i]}} in -*) ;; status|workers|capture|captures|export|completion|"
      "start|stop|list|show|delete|bash) path=\"${{path:+$path }}${{COMP_WORDS[i]}}\" ;; esac\n"
      "  done\n"
      "  case $path in\n{}  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "}}\n"
      "complete -F _neurontrace neurontrace\n",
      cases);
}

}  // namespace

void AddCompletionCommand(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for a shell");
  command->require_subcommand(1);
  command->footer("Example:\n  eval \"$(neurontrace completion bash)\"");
  command->add_subcommand("bash", "For bash");
  command->callback([&app, &run] {
    run = [&app] {
      fmt::print("{}", BashScript(app));
      return kExitDone;
    };
  });
}

}  // namespace neurontrace::cli
