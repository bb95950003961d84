// SPDX-License-Identifier: Apache-2.0
#include "cli/daemon_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "cli/child_setup.h"
#include "lib/base/status.h"

namespace neurontrace::cli {
namespace {

// The interval at which WaitForLine polls `is_abandoned`.
constexpr int kPollMs = 20;
constexpr size_t kLineBytesMax = 64 * 1024;
// Lines of the log in an error message; the last ones contain the reason.
constexpr size_t kLogLinesShown = 5;

// Runs in the child between fork and exec, with the write ends `out` and `log` as its stdout and
// stderr. Memory may be allocated because the process has a single thread. Exits with 127 if exec
// fails.
[[noreturn]] void BecomeDaemon(const std::vector<std::string>& command, pid_t parent, int out,
                               int log) {
  // The own process group keeps Ctrl-C at the terminal for the user's command.
  setpgid(0, 0);
  SetParentDeathSignal(parent, SIGKILL);
  ResetSignals();
  ForgetOptions();
  // The terminal's input belongs to the user's command as well.
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  // The other descriptors of this program have O_CLOEXEC, so that the daemon inherits none.
  execv(argv[0], argv.data());
  dprintf(STDERR_FILENO, "cannot run %s: %s\n", argv[0], strerror(errno));
  _exit(127);
}

// Returns the last lines of a log, each on an indented line of its own; "" if it cannot be read.
std::string EndOf(const std::string& log) {
  std::ifstream file(log);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (lines.size() == kLogLinesShown) lines.erase(lines.begin());
    lines.push_back(line);
  }
  std::string text;
  for (const std::string& line : lines) text += "\n    " + line;
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DaemonProcess>> DaemonProcess::Start(
    const std::vector<std::string>& command, const std::string& log) {
  const UniqueFd log_fd(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log_fd.valid()) return FailedPrecondition("cannot write {}: {}", log, strerror(errno));
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return Internal("pipe: {}", strerror(errno));
  UniqueFd out(fds[0]);
  // The write end is closed here when the function returns, so that the end of the daemon ends the
  // pipe.
  const UniqueFd in(fds[1]);
  // Compared in the child, as the parent may end before the child has asked for its death signal.
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return ResourceExhausted("cannot start {}: {}", command[0], strerror(errno));
  if (pid == 0) BecomeDaemon(command, parent, in.get(), log_fd.get());
  const std::string name = command[0].substr(command[0].rfind('/') + 1);
  return std::unique_ptr<DaemonProcess>(new DaemonProcess(name, log, pid, std::move(out)));
}

DaemonProcess::~DaemonProcess() { Stop(); }

absl::Status DaemonProcess::Failure(const char* what) const {
  return Unavailable("{} {}; its log ends with:{}", name_, what, EndOf(log_));
}

absl::StatusOr<std::string> DaemonProcess::WaitForLine(const std::string& prefix,
                                                       uint32_t timeout_ms,
                                                       const std::function<bool()>& is_abandoned) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    // Lines before the awaited one are dropped.
    for (size_t end; (end = read_.find('\n')) != std::string::npos;) {
      const std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      if (line.starts_with(prefix)) return line.substr(prefix.size());
    }
    // A daemon that prints no line break must not fill memory.
    if (read_.size() > kLineBytesMax) {
      return Failure("printed more than 64 KiB without a line break");
    }
    if (is_abandoned()) return Failure("is no longer awaited");
    if (std::chrono::steady_clock::now() > deadline) return Failure("did not start in time");
    pollfd ready = {out_.get(), POLLIN, 0};
    if (poll(&ready, 1, kPollMs) <= 0) continue;
    char bytes[4096];
    const ssize_t n = read(out_.get(), bytes, sizeof(bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Failure("exited before it was ready");
    read_.append(bytes, static_cast<size_t>(n));
  }
}

bool DaemonProcess::is_running() {
  if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ > 0;
}

void DaemonProcess::Kill() const {
  if (const pid_t pid = pid_; pid > 0) kill(pid, SIGKILL);
}

void DaemonProcess::Stop(uint32_t patience_ms) {
  // The order is SIGTERM, a wait, SIGKILL: a daemon that has time stores what it has.
  if (!is_running()) return;
  kill(pid_, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
  while (is_running() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (!is_running()) return;
  kill(pid_, SIGKILL);
  // After SIGKILL the end is certain, so this waits without a limit.
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace neurontrace::cli
