// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// Options that several commands share, with the same names, help and rules everywhere.
namespace neurontrace::cli {

// Returns a check for options whose absence has a meaning, such as "all": an empty value, mostly an
// unset variable of a script, is refused, followed by `remedy`.
CLI::Validator NotEmpty(const std::string& remedy);

// Add one option each, which is returned so that a command can change it. The variable must outlive
// the parsing.
CLI::Option* AddInstances(CLI::App& command, std::vector<std::string>& instances);
CLI::Option* AddCores(CLI::App& command, std::vector<std::string>& cores);
CLI::Option* AddEventTypes(CLI::App& command, std::vector<std::string>& event_types);
CLI::Option* AddFormat(CLI::App& command, std::string& format);
// Adds --format for a command that accepts several.
CLI::Option* AddFormats(CLI::App& command, std::vector<std::string>& formats);
// Adds --programs for a command with --store.
CLI::Option* AddStorePrograms(CLI::App& command, std::string& programs);

// Parses the values of AddCores: indices inside the process. Fails with INVALID_ARGUMENT if they
// are not understood.
absl::StatusOr<std::vector<uint32_t>> CoresOf(const std::vector<std::string>& cores);
// Parses the values of AddEventTypes: names of the grammar of lib/trace/event_filter.h. Fails with
// INVALID_ARGUMENT also if --all-events was given with some.
absl::StatusOr<std::vector<std::string>> EventTypesOf(const std::vector<std::string>& event_types,
                                                      bool all_events);

}  // namespace neurontrace::cli
