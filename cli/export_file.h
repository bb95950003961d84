// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/export_format.h"
#include "cli/interrupt_watcher.h"

namespace neurontrace::cli {

// Has the aggregator export and writes the bytes to `path` ("-": standard output), a directory
// where the request makes several files: under a temporary name that takes the real one when
// everything is there, so that what has that name is always whole. Shows progress and returns the
// exit code; what it says goes to stderr when the bytes go to stdout. An interrupt that
// `interrupts` sees, where it is not null, ends it: what is written so far goes, and it has failed;
// a second one ends the program.
int ExportToFile(Context& context, const v1::ExportRequest& request, const std::string& path,
                 InterruptWatcher* interrupts = nullptr);

// Has the aggregator export to the request's destination, shows progress, and says where it wrote.
// An interrupt ends the export there; the same command goes on with it.
int ExportToDestination(Context& context, const v1::ExportRequest& request,
                        InterruptWatcher* interrupts);

// For interrupts while there is nothing to be put in order: ends the program.
void EndAtOnce(int count);

}  // namespace neurontrace::cli
