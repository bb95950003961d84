// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/task_runner.h"
#include "lib/base/unique_fd.h"
#include "lib/base/weak_tasks.h"

namespace neurontrace {

// The listening Unix socket (SOCK_SEQPACKET) that taps connect to. On the agent's sequence.
class TapServer {
 public:
  struct Options {
    std::string path;
    mode_t mode = 0660;  // of the socket: who may connect
    int group = -1;      // that owns it; -1: the agent's own
  };
  using Accepted = std::function<void(UniqueFd socket)>;

  // Starts to listen. The directory is created if it does not exist (one level). A socket that an
  // earlier agent left behind is replaced; a lock file beside it (`path`.lock) distinguishes that
  // from an agent that runs. Fails with FAILED_PRECONDITION if one does or the system refuses, and
  // with INVALID_ARGUMENT for a path that is too long or is something other than a socket.
  // `accepted` is called for each connection, while `may_accept` returns true; others wait in the
  // backlog. `runner` outlives the server.
  static absl::StatusOr<std::unique_ptr<TapServer>> Listen(const Options& options,
                                                           TaskRunner& runner,
                                                           std::function<bool()> may_accept,
                                                           Accepted accepted);
  ~TapServer();
  TapServer(const TapServer&) = delete;
  TapServer& operator=(const TapServer&) = delete;

 private:
  TapServer(std::string path, UniqueFd lock, UniqueFd socket, TaskRunner& runner,
            std::function<bool()> may_accept, Accepted accepted);
  void Watch();
  // Stops accepting for a second.
  void Pause();
  void AcceptAll();

  const std::string path_;
  const UniqueFd lock_;
  const UniqueFd socket_;
  TaskRunner& runner_;
  const std::function<bool()> may_accept_;
  const Accepted accepted_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
