// SPDX-License-Identifier: Apache-2.0
#include "cli/traced_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cli/child_setup.h"
#include "lib/base/status.h"

namespace neurontrace::cli {
namespace {

// Both ends of a pipe: bytes written to `in` are read from `out`.
struct Pipe {
  UniqueFd out;
  UniqueFd in;
};

// Returns a pipe that exec closes, or INTERNAL.
absl::StatusOr<Pipe> MakePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return Internal("pipe: {}", strerror(errno));
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// Runs in the child: waits for the release, then becomes the command. `mask` replaces the blocked
// signals. Ends with kExitRecordFailed if the release never comes or exec fails, whose errno is
// written to `failure`.
[[noreturn]] void BecomeCommand(const std::vector<std::string>& words,
                                const std::vector<TracedCommand::Variable>& environment,
                                pid_t parent, const sigset_t& mask, Pipe& go, Pipe& failure) {
  SetParentDeathSignal(parent, SIGKILL);
  go.in.Close();  // so that the parent's end is the only one
  for (const auto& variable : environment) {
    setenv(variable.name.c_str(), variable.value.c_str(), 1);
  }
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  // The end of the pipe without a byte means that the parent does not want the command any more.
  char byte;
  ssize_t n;
  while ((n = read(go.out.get(), &byte, 1)) < 0 && errno == EINTR) {
  }
  if (n == 1) {
    execvp(argv[0], argv.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t written = write(failure.in.get(), &error, sizeof(error));
  }
  _exit(kExitRecordFailed);
}

// Returns whether a regular file is at the path; a directory of the same name is skipped as shells
// do.
bool IsProgram(const std::string& path) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
}

}  // namespace

bool FileExists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string EnvironmentVariable(const char* name) {
  const char* const value = getenv(name);
  return value == nullptr ? "" : value;
}

std::string FindProgram(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos) return name;
  std::string found;  // a file that cannot be executed is better than none: it says so
  for (size_t from = 0; from <= path.size() && !name.empty();) {
    const size_t end = std::min(path.find(':', from), path.size());
    // An empty element of PATH means the current directory.
    const std::string directory = path.substr(from, end - from);
    const std::string candidate = (directory.empty() ? "." : directory) + "/" + name;
    if (IsProgram(candidate) && access(candidate.c_str(), X_OK) == 0) return candidate;
    if (found.empty() && IsProgram(candidate)) found = candidate;
    from = end + 1;
  }
  return found;
}

std::string WithPreload(const std::string& library, const std::string& present) {
  return present.empty() ? library : library + ":" + present;
}

absl::StatusOr<std::unique_ptr<TracedCommand>> TracedCommand::Prepare(
    const std::vector<std::string>& words, const std::vector<Variable>& environment,
    const sigset_t& mask) {
  ASSIGN_OR_RETURN(Pipe go, MakePipe());
  ASSIGN_OR_RETURN(Pipe failure, MakePipe());
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return ResourceExhausted("cannot create a process: {}", strerror(errno));
  if (pid == 0) BecomeCommand(words, environment, parent, mask, go, failure);
  // The constructor takes the parent's ends; the child's ends are closed at the end of this
  // function.
  return std::unique_ptr<TracedCommand>(
      new TracedCommand(pid, std::move(go.in), std::move(failure.out)));
}

TracedCommand::~TracedCommand() {
  if (HasEnded()) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

int TracedCommand::Release() {
  const char byte = 1;
  // The process may have been killed while it waited. SIGPIPE is ignored by then, and HasEnded
  // reports it.
  if (write(go_.get(), &byte, 1) != 1) return 0;
  go_.Close();
  int error = 0;
  ssize_t n;
  // A successful exec closes the other end without a byte.
  while ((n = read(failure_.get(), &error, sizeof(error))) < 0 && errno == EINTR) {
  }
  failure_.Close();
  return n == sizeof(error) ? error : 0;
}

bool TracedCommand::HasEnded() {
  if (!has_ended_ && waitpid(pid_, &status_, WNOHANG) == pid_) has_ended_ = true;
  return has_ended_;
}

void TracedCommand::Forward(int signal) {
  if (!HasEnded()) kill(pid_, signal);
}

int TracedCommand::exit_code() const {
  return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
}

std::string TracedCommand::Outcome() const {
  if (!WIFSIGNALED(status_)) return fmt::format("exit code {}", WEXITSTATUS(status_));
  return fmt::format("signal {} ({})", WTERMSIG(status_), strsignal(WTERMSIG(status_)));
}

}  // namespace neurontrace::cli
