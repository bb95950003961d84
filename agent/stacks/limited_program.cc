// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/limited_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/base/unique_fd.h"

namespace neurontrace {
namespace {

constexpr size_t kReadBytes = 65'536;
// After its output has ended, the exit of the program is polled for: waitpid has no time limit.
constexpr uint64_t kExitPollNs = 5'000'000;
// How soon a cancellation is noticed.
constexpr uint64_t kCancelPollMs = 100;

bool IsCancelled(const ProgramLimits& limits) {
  return limits.cancelled != nullptr && limits.cancelled->load(std::memory_order_relaxed);
}

// What posix_spawn needs; freed at the end.
class SpawnSettings {
 public:
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    // A group of its own, so that children of the program end with it.
    posix_spawnattr_setpgroup(&attributes_, 0);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    // The agent blocks signals that it reads by signalfd, and ignores SIGPIPE.
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  // Starts the program; returns an errno, or 0.
  int Spawn(const std::vector<std::string>& command, int out, int err, pid_t& pid) {
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, err, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    // Nothing of the agent's environment, which may have secrets in it.
    std::array<std::string, 2> texts = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"};
    std::array<char*, 3> environment = {texts[0].data(), texts[1].data(), nullptr};
    return posix_spawn(&pid, command.front().c_str(), &actions_, &attributes_, arguments.data(),
                       environment.data());
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Reads a pipe once. Returns false once nothing more comes.
bool ReadOnce(int fd, std::string& text, size_t bytes_max, bool& is_full) {
  std::array<char, kReadBytes> buffer;
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  const size_t kept = std::min(static_cast<size_t>(got), bytes_max - text.size());
  text.append(buffer.data(), kept);
  if (kept < static_cast<size_t>(got)) is_full = true;
  return got > 0;
}

// Reads both pipes until they end or a limit is reached.
ProgramResult::End ReadAll(int out, int err, const ProgramLimits& limits, const Clock& clock,
                           uint64_t deadline_ns, ProgramResult& result) {
  bool is_full = false;
  bool is_err_full = false;  // what follows is discarded
  std::array<pollfd, 2> pipes = {{{out, POLLIN, 0}, {err, POLLIN, 0}}};
  while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
    const uint64_t now_ns = clock.MonotonicNs();
    if (now_ns >= deadline_ns || IsCancelled(limits)) return ProgramResult::End::kTimedOut;
    const auto wait_ms =
        static_cast<int>(std::min((deadline_ns - now_ns) / 1'000'000 + 1, kCancelPollMs));
    if (poll(pipes.data(), pipes.size(), wait_ms) <= 0) continue;
    if (pipes[0].revents != 0 && !ReadOnce(out, result.out, limits.out_bytes_max, is_full)) {
      pipes[0].fd = -1;
    }
    if (pipes[1].revents != 0 && !ReadOnce(err, result.err, limits.err_bytes_max, is_err_full)) {
      pipes[1].fd = -1;
    }
    if (is_full) return ProgramResult::End::kTooLarge;
  }
  return ProgramResult::End::kExited;
}

// Waits for the end of a program that has closed its output. Returns false at the deadline.
bool WaitUntil(pid_t pid, const ProgramLimits& limits, const Clock& clock, uint64_t deadline_ns,
               int& status) {
  for (;;) {
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid || (ended < 0 && errno != EINTR)) return true;
    if (clock.MonotonicNs() >= deadline_ns || IsCancelled(limits)) return false;
    const timespec pause{.tv_sec = 0, .tv_nsec = kExitPollNs};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace

absl::StatusOr<ProgramResult> RunLimited(const std::vector<std::string>& command,
                                         const ProgramLimits& limits) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0) {
    return absl::InternalError(fmt::format("pipe: {}", std::strerror(errno)));
  }
  const UniqueFd out_read(out[0]);
  UniqueFd out_write(out[1]);
  if (pipe2(err, O_CLOEXEC) != 0) {
    return absl::InternalError(fmt::format("pipe: {}", std::strerror(errno)));
  }
  const UniqueFd err_read(err[0]);
  UniqueFd err_write(err[1]);
  pid_t pid = -1;
  const int error = SpawnSettings().Spawn(command, out_write.get(), err_write.get(), pid);
  if (error == EAGAIN || error == ENOMEM) {
    return absl::InternalError(
        fmt::format("{} cannot be started: {}", command.front(), std::strerror(error)));
  }
  if (error != 0) {
    return NotFound("{} cannot be started: {}", command.front(), std::strerror(error));
  }
  // Closed here, so that the pipes end with the program.
  out_write = UniqueFd();
  err_write = UniqueFd();
  const SystemClock clock;
  const uint64_t deadline_ns = clock.MonotonicNs() + limits.time_ns;
  ProgramResult result;
  result.end = ReadAll(out_read.get(), err_read.get(), limits, clock, deadline_ns, result);
  int status = 0;
  if (result.end == ProgramResult::End::kExited &&
      !WaitUntil(pid, limits, clock, deadline_ns, status)) {
    result.end = ProgramResult::End::kTimedOut;
  }
  if (result.end != ProgramResult::End::kExited) {
    kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return result;
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

}  // namespace neurontrace
