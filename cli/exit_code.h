// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace neurontrace::cli {

// What scripts may rely on; docs/user/cli.md lists them for users.
enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitIncomplete = 3,  // finished, but not everything that was asked for is there
};

}  // namespace neurontrace::cli
