// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/host_view.h"
#include "cli/process_tree.h"

namespace neurontrace::cli {

// Explains why a library cannot be preloaded into a program; empty: nothing is known against
// it. `path` is the program's file; of a script its interpreter is looked at.
std::string PreloadObstacle(HostView& host, const std::string& path);

// Why a command that has ended brought no worker: one reason a line, with what to do about it.
// `obstacle` is PreloadObstacle of its program.
std::vector<std::string> ExplainNoWorker(const ProcessTree& tree, const std::string& obstacle);

}  // namespace neurontrace::cli
