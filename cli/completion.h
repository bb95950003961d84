// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

// Completions of a command line, derived from the parser itself, so that they always match its
// options. Pure functions, used by the hidden command __complete; nothing here calls the
// aggregator.
namespace neurontrace::cli {

// A possible next word.
struct Candidate {
  std::string text;
  std::string description;  // one line; empty: none
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// What the shell offers in addition.
enum class CompletionKind { kNothing, kFiles, kDirectories, kCommands };

// The result for one position of the cursor.
struct Completions {
  std::vector<Candidate> candidates;
  CompletionKind kind = CompletionKind::kNothing;
};

// Returns the completions of the last word. `words` are those after the program's name; the last
// one is being typed and may be empty. A '=' may be a word of its own, as bash splits it.
Completions Complete(const CLI::App& app, const std::vector<std::string>& words);

// Returns the values to which an option is limited; empty if it is not.
std::vector<std::string> ValuesOf(const CLI::Option& option);

}  // namespace neurontrace::cli
