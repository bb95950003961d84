// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

// What may stand next on a command line, found out from the parser itself so that it never lags
// behind the options.
namespace neurontrace::cli {

struct Candidate {
  std::string text;
  std::string description;  // one line; empty: none
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// What the shell is to offer besides.
enum class CompletionKind { kNothing, kFiles, kDirectories, kCommands };

struct Completions {
  std::vector<Candidate> candidates;
  CompletionKind kind = CompletionKind::kNothing;
};

// `words`: those behind the program's name, up to the one that is being typed, which is the last
// and may be empty. A '=' may be a word of its own, as bash has it.
Completions Complete(const CLI::App& app, const std::vector<std::string>& words);

// The values that an option is limited to; empty: it is not.
std::vector<std::string> ValuesOf(const CLI::Option& option);

}  // namespace neurontrace::cli
