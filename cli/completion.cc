// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <algorithm>
#include <string_view>

namespace neurontrace::cli {
namespace {

// Options whose values are files or directories, which the shell completes itself, and the names of
// positional arguments with the same meaning. An option that is missing here gets no completion.
constexpr std::string_view kFileOptions[] = {"out", "tap", "agent-socket", "program"};
constexpr std::string_view kDirectoryOptions[] = {"programs", "directory", "framework-dir"};
constexpr char kFile[] = "FILE";
constexpr char kCommand[] = "COMMAND";

// Returns whether a long name of the option is in the list.
template <size_t N>
bool IsOneOf(const CLI::Option& option, const std::string_view (&names)[N]) {
  return std::any_of(
      option.get_lnames().begin(), option.get_lnames().end(), [&names](const std::string& name) {
        return std::find(std::begin(names), std::end(names), name) != std::end(names);
      });
}

// Returns all subcommands: without a filter CLI11 returns only those that were parsed.
std::vector<const CLI::App*> ChildrenOf(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App*) { return true; });
}

// Returns the subcommand of this name, or null.
const CLI::App* FindChild(const CLI::App& command, const std::string& name) {
  for (const CLI::App* const child : ChildrenOf(command)) {
    if (child->get_name() == name) return child;
  }
  return nullptr;
}

// Returns the option that a word such as "--format=json" names, or null. Searches in the command,
// then in those above it, as the parser does with fallthrough().
const CLI::Option* FindOption(const CLI::App& command, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  for (const CLI::App* at = &command; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* const option : at->get_options()) {
      if (!option->get_positional() && option->check_name(name)) return option;
    }
  }
  return nullptr;
}

// Returns whether the option needs a value; flags do not.
bool TakesValue(const CLI::Option& option) { return option.get_expected_max() > 0; }

// The position that the words before the last one lead to.
struct Place {
  const CLI::App* command;
  const CLI::Option* option = nullptr;  // whose value is next
  bool is_behind_dashes = false;
};

// Follows all words but the last. Unknown words are skipped, as the line may be incomplete or
// wrong.
Place Follow(const CLI::App& app, const std::vector<std::string>& words) {
  Place place{&app};
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    // bash makes '=' a word of its own; it neither ends the option nor is its value.
    if (place.is_behind_dashes || word == "=") continue;
    if (place.option != nullptr) {
      place.option = nullptr;
    } else if (word == "--") {
      place.is_behind_dashes = true;
    } else if (word.starts_with('-')) {
      const CLI::Option* const option = FindOption(*place.command, word);
      const bool has_value = word.find('=') != std::string::npos;
      if (option != nullptr && TakesValue(*option) && !has_value) place.option = option;
    } else if (const CLI::App* const child = FindChild(*place.command, word)) {
      place.command = child;
    }
  }
  return place;
}

// Adds candidates for a value that begins with `typed`, each preceded by `before`.
void AddValues(const CLI::Option& option, const std::string& typed, const std::string& before,
               Completions& out) {
  for (const std::string& value : ValuesOf(option)) {
    if (value.starts_with(typed)) out.candidates.push_back({before + value, ""});
  }
  if (IsOneOf(option, kFileOptions)) out.kind = CompletionKind::kFiles;
  if (IsOneOf(option, kDirectoryOptions)) out.kind = CompletionKind::kDirectories;
}

// Adds the long options that begin with `typed`, of the command and those above it. An option of
// the inner command hides one of the same name above it.
void AddOptions(const CLI::App& command, const std::string& typed, Completions& out) {
  for (const CLI::App* at = &command; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* const option : at->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        const std::string text = "--" + name;
        const bool is_known = std::any_of(out.candidates.begin(), out.candidates.end(),
                                          [&text](const Candidate& c) { return c.text == text; });
        if (!text.starts_with(typed) || is_known) continue;
        out.candidates.push_back({text, option->get_description()});
      }
    }
  }
}

// Adds subcommands that begin with `typed`, and files if the command takes one.
void AddCandidates(const CLI::App& command, const std::string& typed, Completions& out) {
  for (const CLI::App* const child : ChildrenOf(command)) {
    if (!child->get_name().starts_with(typed)) continue;
    out.candidates.push_back({child->get_name(), child->get_description()});
  }
  for (const CLI::Option* const option : command.get_options()) {
    if (!option->get_positional()) continue;
    if (option->get_name() == kFile) out.kind = CompletionKind::kFiles;
  }
}

// Returns whether words after -- are a command to run.
bool RunsCommands(const CLI::App& command) {
  const std::vector<const CLI::Option*> options = command.get_options();
  return std::any_of(options.begin(), options.end(), [](const CLI::Option* option) {
    return option->get_positional() && option->get_name() == kCommand;
  });
}

// Returns the text after the colon in the last line of __complete, which the scripts interpret.
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

// The scripts for the shells. Each runs `neurontrace __complete WORDS` and reads
// "TEXT<tab>DESCRIPTION" lines, then ":KIND". Errors are discarded because they would appear in the
// user's prompt.
constexpr char kBash[] =
    R"sh(# bash completion for neurontrace: eval "$(neurontrace completion bash)"
_neurontrace() {
  local line kind= word=${COMP_WORDS[COMP_CWORD]}
  [[ $word == = ]] && word=
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :*) kind=${line#:} ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  case $kind in
    files)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    directories)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    commands) mapfile -t COMPREPLY < <(compgen -c -- "$word"; compgen -f -- "$word") ;;
  esac
}
complete -F _neurontrace neurontrace
)sh";

constexpr char kZsh[] = R"sh(#compdef neurontrace
# zsh completion for neurontrace: eval "$(neurontrace completion zsh)", or put this file into
# $fpath as _neurontrace
_neurontrace() {
  local line kind text
  local -a candidates
  while IFS= read -r line; do
    case $line in
      :*) kind=${line#:} ;;
      *) text=${line%%$'\t'*}; candidates+=("${text//:/\\:}:${line#*$'\t'}") ;;
    esac
  done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( $#candidates )) && _describe -V neurontrace candidates
  case $kind in
    files) _files ;;
    directories) _files -/ ;;
    commands) _command_names -e; _files ;;
  esac
}
if [[ $funcstack[1] == _neurontrace ]]; then
  _neurontrace "$@"
else
  compdef _neurontrace neurontrace
fi
)sh";

constexpr char kFish[] =
    R"sh(# fish completion for neurontrace: neurontrace completion fish | source
function __neurontrace_complete
  set -l words (commandline -opc)
  set -l token (commandline -ct)
  for line in (command $words[1] __complete $words[2..-1] "$token" 2>/dev/null)
    switch $line
      case ':files'
        __fish_complete_path "$token"
      case ':directories'
        __fish_complete_directories "$token"
      case ':commands'
        __fish_complete_command
      case ':*'
      case '*'
        echo $line
    end
  end
end
complete -c neurontrace -e
complete -c neurontrace -f -a '(__neurontrace_complete)'
)sh";

// Returns the script for "bash", "zsh" or "fish"; "" for any other shell.
std::string CompletionScript(const std::string& shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  return shell == "fish" ? kFish : "";
}

}  // namespace

std::vector<std::string> ValuesOf(const CLI::Option& option) {
  // CLI::IsMember has no accessor for its values, but puts them into the type name.
  const std::string type = option.get_type_name();  // "TEXT:{table,json}"
  const size_t open = type.find('{');
  const size_t close = type.find('}', open);
  std::vector<std::string> values;
  if (open == std::string::npos || close == std::string::npos) return values;
  for (size_t from = open + 1; from < close;) {
    const size_t end = std::min(type.find(',', from), close);
    values.push_back(type.substr(from, end - from));
    from = end + 1;
  }
  return values;
}

Completions Complete(const CLI::App& app, const std::vector<std::string>& words) {
  Completions out;
  const Place place = Follow(app, words);
  const std::string last = words.empty() || words.back() == "=" ? "" : words.back();
  if (place.is_behind_dashes) {
    if (RunsCommands(*place.command)) out.kind = CompletionKind::kCommands;
  } else if (place.option != nullptr) {
    AddValues(*place.option, last, "", out);
  } else if (const size_t equals = last.find('=');
             last.starts_with("--") && equals != std::string::npos) {
    // The value is part of the word: candidates must repeat the option, as the shell replaces the
    // whole word.
    const CLI::Option* const option = FindOption(*place.command, last);
    if (option != nullptr && TakesValue(*option)) {
      AddValues(*option, last.substr(equals + 1), last.substr(0, equals + 1), out);
    }
  } else if (last.starts_with('-')) {
    AddOptions(*place.command, last, out);
  } else {
    AddCandidates(*place.command, last, out);
  }
  return out;
}

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
