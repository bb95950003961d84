// SPDX-License-Identifier: Apache-2.0
// What shells need: each asks the program itself for what may stand next.
#include "cli/completion.h"

namespace neurontrace::cli {
namespace {

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

}  // namespace

std::string CompletionScript(const std::string& shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  return shell == "fish" ? kFish : "";
}

}  // namespace neurontrace::cli
