// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/unique_fd.h"

namespace neurontrace::cli {

// Exit codes if no command ran, as in env(1) and timeout(1).
enum RecordExitCode : int {
  kExitRecordFailed = 125,    // of `record` itself, before the command began
  kExitCannotRun = 126,       // the command exists and cannot be executed
  kExitCommandMissing = 127,  // the command does not exist
};

// Returns whether the file exists, of whatever type.
bool FileExists(const std::string& path);

// Returns a variable of this process's environment; "" if it is not set.
std::string EnvironmentVariable(const char* name);

// Returns the path that a shell would run for `name`: itself if it has a slash, else the first
// match in `path` (a PATH). "" if there is none.
std::string FindProgram(const std::string& name, const std::string& path);

// Returns a value of LD_PRELOAD with `library` in front of the present ones, so that its functions
// precede theirs.
std::string WithPreload(const std::string& library, const std::string& present);

// The command that `record` runs for its user. The process is forked at once, while there is a
// single thread, and waits; Release lets the command begin. It has this process's stdin, stdout,
// stderr, signal mask and dispositions, and is in its process group, so that the terminal treats
// both alike. The kernel kills it if this process is killed. One thread, the program's first.
class TracedCommand {
 public:
  struct Variable {
    std::string name;
    std::string value;
  };
  // Forks the process. `environment` is added to that of this process; `mask` contains the signals
  // that were blocked when the program began. Fails with INTERNAL or RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<TracedCommand>> Prepare(
      const std::vector<std::string>& words, const std::vector<Variable>& environment,
      const sigset_t& mask);
  // Kills the command if it has not ended.
  ~TracedCommand();
  TracedCommand(const TracedCommand&) = delete;
  TracedCommand& operator=(const TracedCommand&) = delete;

  // Lets the command begin, and returns once it has: 0, or the errno of a failed exec. 0 also if
  // the process was killed before. Called once.
  int Release();
  // Returns whether it has ended, by asking the kernel. Signals may end it before its release.
  bool HasEnded();
  // Sends a signal to the command, unless it has ended and its pid may belong to another process.
  void Forward(int signal);

  pid_t pid() const { return pid_; }
  // Returns the exit code once it has ended: as a shell does, 128 plus the signal's number if a
  // signal killed it.
  int exit_code() const;
  // Returns "exit code 7" or "signal 9 (Killed)".
  std::string Outcome() const;

 private:
  TracedCommand(pid_t pid, UniqueFd go, UniqueFd failure)
      : pid_(pid), go_(std::move(go)), failure_(std::move(failure)) {}

  const pid_t pid_;
  bool has_ended_ = false;
  int status_ = 0;    // of waitpid
  UniqueFd go_;       // a byte into it is the release
  UniqueFd failure_;  // yields the errno of a failed exec, or its end
};

}  // namespace neurontrace::cli
