// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/command.h"

namespace neurontrace::cli {

// perfetto, json, events or summary-json, by name, or by the file's ending when the name is empty.
absl::StatusOr<v1::ExportFormat> ExportFormatOf(const std::string& name, const std::string& path);

// "system_profile.pftrace" and "system_profile.json" are the vendor's names; "events.jsonl" is
// ours.
std::string DefaultFileName(v1::ExportFormat format);

// Has the aggregator export and writes the bytes to `path` ("-": standard output): under a
// temporary name that takes the real one when everything is there, so that a file of that name is
// always whole. Shows progress and returns the exit code; what it says goes to stderr when the
// bytes go to stdout.
int ExportToFile(Context& context, const v1::ExportRequest& request, const std::string& path);

}  // namespace neurontrace::cli
