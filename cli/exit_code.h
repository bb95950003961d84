// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared by all commands; `record` also returns the command's own codes, see RecordExitCode.
namespace neurontrace::cli {

// Exit codes, on which scripts may rely; docs/user/cli.md lists them for users. Plain values.
enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitIncomplete = 3,  // finished, but not everything that was asked for exists
};

}  // namespace neurontrace::cli
