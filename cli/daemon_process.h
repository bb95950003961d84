// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/unique_fd.h"

namespace neurontrace::cli {

// A program that runs in the background for this one and ends with it, for whatever reason: the
// kernel kills it when the thread that started it ends. It has its own process group, so that
// Ctrl-C at the terminal does not reach it. Used by `record` for its private agent and aggregator.
// One thread, which must be the program's first, except for Kill.
class DaemonProcess {
 public:
  // Starts `command`, which begins with the program's path; its stderr is appended to the file
  // `log`. Of the variables NEURONTRACE_… it receives only NEURONTRACE_INSTANCE_ID. Called while
  // this process has a single thread, as it forks. Fails with FAILED_PRECONDITION if the log cannot
  // be written, INTERNAL or RESOURCE_EXHAUSTED if the process cannot be created. WaitForLine
  // reports an exec that fails.
  static absl::StatusOr<std::unique_ptr<DaemonProcess>> Start(
      const std::vector<std::string>& command, const std::string& log);
  // Ends it as Stop does.
  ~DaemonProcess();
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  // Returns the rest of the first line of its stdout that begins with `prefix`. Fails with
  // UNAVAILABLE, with the end of the log, if the program ends before, prints no such line in time,
  // prints more than 64 KiB without a line break, or if `is_abandoned`, which is polled every few
  // milliseconds, returns true.
  absl::StatusOr<std::string> WaitForLine(const std::string& prefix, uint32_t timeout_ms,
                                          const std::function<bool()>& is_abandoned);
  // Returns whether it still runs; collects its exit status. Called after SIGCHLD.
  bool is_running();
  // Sends SIGKILL and nothing else: Stop still has to follow. Any thread.
  void Kill() const;
  // Sends SIGTERM, and SIGKILL if it still runs after `patience_ms`. Waits for its end.
  void Stop(uint32_t patience_ms = 5'000);

 private:
  DaemonProcess(std::string name, std::string log, pid_t pid, UniqueFd out)
      : name_(std::move(name)), log_(std::move(log)), pid_(pid), out_(std::move(out)) {}
  // Returns UNAVAILABLE with the program's name and the last lines of its log.
  absl::Status Failure(const char* what) const;

  const std::string name_;
  const std::string log_;
  std::atomic<pid_t> pid_;  // -1: it has ended
  // Read end of its stdout; lines after the awaited one stay in it.
  UniqueFd out_;
  std::string read_;  // read from its stdout and not yet a whole line
};

}  // namespace neurontrace::cli
