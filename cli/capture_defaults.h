// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/status.h"
#include "cli/capture_options.h"
#include "cli/config_file.h"

// Options of a capture that are in a file of options, and were not typed.
namespace neurontrace::cli {

// Drops a file's value where it contradicts what was typed, or has no meaning with it:
// --last 20s is about the past, whatever duration is usual here. `options` are those of `command`.
void YieldToTyped(const CLI::App& command, const ConfigOrigins& origins, CaptureOptions& options);

// Whether the option was typed; false of one that a file gives.
bool IsTyped(const CLI::App& command, const std::string& name);

// The refusal of a command, with the lines of files behind it that had a part in what it refuses.
absl::Status NamingDefaults(const CLI::App& command, const ConfigOrigins& origins,
                            const absl::Status& refusal);

}  // namespace neurontrace::cli
