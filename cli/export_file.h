// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/export_format.h"
#include "cli/export_interrupt.h"

namespace neurontrace::cli {

// The outcome of an export that breaks off.
enum class Leaving {
  kLeave,       // it is left for the next one of the same, and what is there is gone on with
  kBeginAnew,   // nothing is left, and what is there is removed
  kOfNoMeaning  // nothing is left; what others left is not looked at
};

struct ExportTarget {
  std::string path;  // "-": standard output; a directory where the request makes several files
  InterruptWatcher* interrupts = nullptr;
  Leaving leaving = Leaving::kLeave;
  std::string_view who_goes_on = "the same command";  // that resumes a partial export, as text
};

// Has the aggregator export and writes the bytes to the target's path: under a temporary name that
// takes the real one when everything is there, so that what has that name is always whole. Shows
// progress, continues where the aggregator goes away and comes back, and returns the exit code;
// what it says goes to stderr when the bytes go to stdout. An interrupt ends it, and it has failed;
// a second one ends the program. What was received until then, or until the aggregator was away for
// too long, is left as `leaving` says.
int ExportToFile(Context& context, const v1::ExportRequest& request, const ExportTarget& target);

// Has the aggregator export to the request's destination, shows progress, and says where it wrote.
// An interrupt ends the export there; the same command continues with it.
int ExportToDestination(Context& context, const v1::ExportRequest& request,
                        InterruptWatcher* interrupts);

}  // namespace neurontrace::cli
