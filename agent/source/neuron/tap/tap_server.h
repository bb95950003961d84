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
    // The permissions of the socket: who may connect.
    mode_t mode = 0660;
    // The group that owns the socket; -1: the agent's own.
    int group = -1;
  };
  // Takes a connected, non-blocking socket.
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
  // Stops listening and removes the socket file; the lock is released.
  ~TapServer();
  TapServer(const TapServer&) = delete;
  TapServer& operator=(const TapServer&) = delete;

 private:
  TapServer(std::string path, UniqueFd lock, UniqueFd socket, TaskRunner& runner,
            std::function<bool()> may_accept, Accepted accepted);
  // Accepts when a connection is waiting.
  void Watch();
  // Stops accepting for a second.
  void Pause();
  // Accepts the connections that wait, up to a limit for each turn.
  void AcceptAll();

  const std::string path_;
  // Holds the lock file open and locked for as long as this agent listens.
  const UniqueFd lock_;
  const UniqueFd socket_;
  TaskRunner& runner_;
  const std::function<bool()> may_accept_;
  const Accepted accepted_;
  // Cancels the end of a pause when the server is destroyed.
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
