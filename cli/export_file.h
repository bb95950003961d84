// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/export_format.h"
#include "cli/export_interrupt.h"

namespace neurontrace::cli {

// What happens to the files of an export that is interrupted, and to those of a previous one.
enum class PartialFiles {
  kResume,   // they stay for the next export of the same, and existing ones are continued
  kRestart,  // nothing stays, and existing ones are removed first
  kIgnore    // nothing stays, and existing ones are ignored
};

// Where an export is written, and how it may end. The referenced objects must outlive the call.
struct ExportTarget {
  std::string path;  // "-": standard output; a directory where the request makes several files
  InterruptWatcher* interrupts = nullptr;
  PartialFiles partial_files = PartialFiles::kResume;
  std::string_view resumed_by = "the same command";  // who resumes a partial export, for a message
};

// Lets the aggregator export and writes the bytes to the target's path, under a temporary name
// until all of them are present. Shows progress, and continues when the aggregator disappears and
// returns. Messages go to stderr if the bytes go to stdout.
//
// An interrupt ends the export with a failure; a second one ends the program. The bytes received
// until then, or until the aggregator was away for too long, are treated as `partial_files`
// demands. Returns the exit code: kExitIncomplete if the capture is incomplete or nothing was
// selected. Blocks; called on the main thread.
int ExportToFile(Context& context, const v1::ExportRequest& request, const ExportTarget& target);

// Lets the aggregator export to the request's destination, shows progress, and prints where it
// wrote. An interrupt ends the export there, and the same command continues it. Makes one call and
// does not retry. Returns the exit code as ExportToFile does.
int ExportToDestination(Context& context, const v1::ExportRequest& request,
                        InterruptWatcher* interrupts);

}  // namespace neurontrace::cli
