// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/status.h"
#include "cli/capture_options.h"
#include "cli/config_file.h"

// Options of a capture that come from a file of options and were not typed.
namespace neurontrace::cli {

// Drops a file's value if it contradicts a typed option, or has no meaning with it: --last 20s is
// about the past, whatever duration the file sets. `options` are those of `command`.
void YieldToTyped(const CLI::App& command, const ConfigOrigins& origins, CaptureOptions& options);

// Returns whether the option was typed, and does not come from a file.
bool IsTyped(const CLI::App& command, const std::string& name);

// Returns the refusal of a command, followed by the lines of files that contributed to it, so that
// a user finds values that were not typed.
absl::Status NamingDefaults(const CLI::App& command, const ConfigOrigins& origins,
                            const absl::Status& refusal);

}  // namespace neurontrace::cli
