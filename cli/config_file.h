// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

// Values of options from files, as TOML. A key is the long name of an option: before any section
// for the options of every command, and in a section such as [export] or [capture.start] for those
// of that command.
namespace neurontrace::cli {

// A file that may contain values. Later ones in a list override earlier ones.
struct ConfigPlace {
  std::string path;
  std::string label;        // "user file"
  bool must_exist = false;  // the user named it
};

// Returns the system's file, then the user's, by the environment; see
// docs/operator/configuration.md.
std::vector<ConfigPlace> UsualConfigPlaces();

// The place of an option's value.
struct ConfigOrigin {
  std::string label;  // of the place
  std::string path;
  size_t line = 0;
};
// The lines in effect, by the parser's options. The keys are valid while the parser lives.
using ConfigOrigins = std::map<const CLI::Option*, ConfigOrigin>;

// Makes the values of the files the defaults of the parser's options, so that the environment and
// the command line override them. Fails with INVALID_ARGUMENT, naming file, line and column, for an
// unknown section or key, a missing value, or one that the option refuses. Fails with
// FAILED_PRECONDITION if a file cannot be read, or does not exist and must.
absl::Status ApplyConfig(CLI::App& app, const std::vector<ConfigPlace>& places,
                         ConfigOrigins& origins);

// Returns true for options whose values may come from a file.
bool IsConfigurable(const CLI::Option& option);

// Returns the words that lead to a command, without the program's name: "capture start".
std::string PathOf(const CLI::App& command);

}  // namespace neurontrace::cli
