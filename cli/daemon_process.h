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

// A program that works for this one in the background and ends with it, however that ends: the
// kernel kills it when the thread that started it is gone. It is in a process group of its own,
// so that Ctrl-C at the terminal does not reach it. One
// thread, which must be the program's first, but for Kill.
class DaemonProcess {
 public:
  // `command` begins with the program's path. Its stderr goes to the file `log`. Of the variables
  // NEURONTRACE_… it has only the machine's name, NEURONTRACE_INSTANCE_ID. Start it while this
  // process has a single thread.
  static absl::StatusOr<std::unique_ptr<DaemonProcess>> Start(
      const std::vector<std::string>& command, const std::string& log);
  // Ends it: see Stop.
  ~DaemonProcess();
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  // What follows `prefix` in the first line of its stdout that begins so. UNAVAILABLE, with the end
  // of the log, when the program ends before, or says nothing of the kind in time; also when
  // `is_abandoned` (asked every few milliseconds) says so.
  absl::StatusOr<std::string> WaitForLine(const std::string& prefix, uint32_t timeout_ms,
                                          const std::function<bool()>& is_abandoned);
  // Notes that it has ended, where it has. Call it when SIGCHLD came.
  bool is_running();
  // SIGKILL, and nothing else: Stop still has to follow. From any thread.
  void Kill() const;
  // SIGTERM, and SIGKILL if it still runs after `patience_ms`.
  void Stop(uint32_t patience_ms = 5'000);

 private:
  DaemonProcess(std::string name, std::string log, pid_t pid, UniqueFd out)
      : name_(std::move(name)), log_(std::move(log)), pid_(pid), out_(std::move(out)) {}
  absl::Status Failure(const char* what) const;

  const std::string name_;
  const std::string log_;
  std::atomic<pid_t> pid_;  // -1: it has ended
  UniqueFd out_;
  std::string read_;  // of its stdout, from the beginning of the line that is not whole yet
};

}  // namespace neurontrace::cli
