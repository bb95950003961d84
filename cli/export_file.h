// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "cli/interrupt_watcher.h"

namespace neurontrace::cli {

// perfetto, json, events or summary-json, by name, or by the file's ending when the name is empty.
absl::StatusOr<v1::ExportFormat> ExportFormatOf(const std::string& name, const std::string& path);

// "system_profile.pftrace" and "system_profile.json" are the vendor's names; "events.jsonl" is
// ours.
std::string DefaultFileName(v1::ExportFormat format);

// Has the aggregator export and writes the bytes to `path` ("-": standard output): under a
// temporary name that takes the real one when everything is there, so that a file of that name is
// always whole. Shows progress and returns the exit code; what it says goes to stderr when the
// bytes go to stdout. An interrupt that `interrupts` sees, where it is not null, ends it: what is
// written so far goes, and it has failed; a second one ends the program.
int ExportToFile(Context& context, const v1::ExportRequest& request, const std::string& path,
                 InterruptWatcher* interrupts = nullptr);

// For interrupts while there is nothing to be put in order: ends the program.
void EndAtOnce(int count);

}  // namespace neurontrace::cli
