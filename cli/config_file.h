// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

// Values of options from files, as TOML: a key is the long name of an option, before any section
// for the options of every command, and in a section [export] or [capture.start] for those of that
// command.
namespace neurontrace::cli {

// One file that may hold values. Later ones in a list win.
struct ConfigPlace {
  std::string path;
  std::string label;        // "user file"
  bool must_exist = false;  // somebody named it
};

// The system's file, then the user's, by the environment: see docs/operator/configuration.md.
std::vector<ConfigPlace> UsualConfigPlaces();

// Where the value of an option stands.
struct ConfigOrigin {
  std::string label;  // of the place
  std::string path;
  size_t line = 0;
};
using ConfigOrigins = std::map<const CLI::Option*, ConfigOrigin>;

// Makes the values of the files the defaults of the parser's options, so that the environment and
// the command line win. INVALID_ARGUMENT names the file, the line and the column that is wrong: an
// unknown section or key, no value, or one that the option does not take. FAILED_PRECONDITION: a
// file is there and cannot be read, or it is not there and must be.
absl::Status ApplyConfig(CLI::App& app, const std::vector<ConfigPlace>& places,
                         ConfigOrigins& origins);

// True for options whose values may come from a file.
bool IsConfigurable(const CLI::Option& option);

// "capture start": the words that lead to a command from the program's name on, without this.
std::string PathOf(const CLI::App& command);

}  // namespace neurontrace::cli
