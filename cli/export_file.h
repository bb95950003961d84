// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/export_format.h"
#include "cli/export_interrupt.h"

namespace neurontrace::cli {

// What happens to the files of an export that is interrupted.
enum class Leaving {
  kLeave,       // they stay for the next export of the same, and existing ones are continued
  kBeginAnew,   // nothing stays, and existing ones are removed first
  kOfNoMeaning  // nothing stays, and existing ones are ignored
};

// Where an export goes, and how it may end.
struct ExportTarget {
  std::string path;  // "-": standard output; a directory where the request makes several files
  InterruptWatcher* interrupts = nullptr;
  Leaving leaving = Leaving::kLeave;
  std::string_view who_goes_on = "the same command";  // who resumes a partial export, for a message
};

// Lets the aggregator export and writes the bytes to the target's path, under a temporary name
// until all of them are there. Shows progress, and continues when the aggregator disappears and
// returns. Returns the exit code. Messages go to stderr if the bytes go to stdout. An interrupt
// ends it with a failure; a second one ends the program. The bytes received until then, or until
// the aggregator was away for too long, are treated as `leaving` demands.
int ExportToFile(Context& context, const v1::ExportRequest& request, const ExportTarget& target);

// Lets the aggregator export to the request's destination, shows progress, and prints where it
// wrote. An interrupt ends the export there; the same command continues it. Returns the exit code.
int ExportToDestination(Context& context, const v1::ExportRequest& request,
                        InterruptWatcher* interrupts);

}  // namespace neurontrace::cli
