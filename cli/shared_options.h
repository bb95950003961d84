// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// Options that several commands have: the same names, words and rules wherever they stand.
namespace neurontrace::cli {

// For options that mean something when they are left out, like "all": a value with nothing in it,
// mostly a variable of a script that is not set, is refused, with `way_out` behind it.
CLI::Validator NotEmpty(const std::string& way_out);

CLI::Option* AddInstances(CLI::App& command, std::vector<std::string>& instances);
CLI::Option* AddCores(CLI::App& command, std::vector<std::string>& cores);
CLI::Option* AddEventTypes(CLI::App& command, std::vector<std::string>& event_types);
CLI::Option* AddFormat(CLI::App& command, std::string& format);

// What AddCores took: indices inside the process. INVALID_ARGUMENT where it is not understood.
absl::StatusOr<std::vector<uint32_t>> CoresOf(const std::vector<std::string>& cores);
// What AddEventTypes took: names of the grammar of lib/trace/event_filter.h; INVALID_ARGUMENT also
// where --all-events was given beside some.
absl::StatusOr<std::vector<std::string>> EventTypesOf(const std::vector<std::string>& event_types,
                                                      bool all_events);

}  // namespace neurontrace::cli
