// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace neurontrace {

// Runs `neurontrace-simulate` and returns its exit code: 0, 1 if an answer names an innocent rank
// or a file cannot be read or written, 2 on wrong usage, 3 if a fault was not named exactly.
int RunSimulateCommand(int argc, char** argv);

}  // namespace neurontrace
