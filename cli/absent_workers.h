// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/host_view.h"
#include "cli/process_tree.h"

// Explains why a command of `neurontrace record` recorded no worker. The causes are those of
// ld.so(8), which ignores LD_PRELOAD in setuid programs, and those in docs/user/tap.md.
namespace neurontrace::cli {

// Returns why a library cannot be preloaded into a program, or "" if no obstacle is known. `path`
// is the program's file; for a script its interpreter is examined. Reads files through `host`.
std::string PreloadObstacle(HostView& host, const std::string& path);

// Returns why a command that has ended had no worker: one reason in each line, with what to do
// about it. `obstacle` is the result of PreloadObstacle for its program. Pure.
std::vector<std::string> ExplainNoWorker(const ProcessTree& tree, const std::string& obstacle);

}  // namespace neurontrace::cli
