// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

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
  // Receives the connections.
  class Listener {
   public:
    virtual ~Listener() = default;
    // Returns whether a connection may be accepted now. If not, those that wait stay in the
    // backlog, and this is asked again a second later.
    virtual bool CanAccept() = 0;
    // Takes a connected, non-blocking socket.
    virtual void OnAccepted(UniqueFd socket) = 0;
  };

  // Starts to listen. The directory is created if it does not exist (one level). A socket that an
  // earlier agent left behind is replaced; a lock file beside it (`path`.lock) distinguishes that
  // from an agent that runs. Fails with FAILED_PRECONDITION if one does or the system refuses, and
  // with INVALID_ARGUMENT for a path that is too long or is something other than a socket.
  // `runner` and `listener` outlive the server.
  static absl::StatusOr<std::unique_ptr<TapServer>> Listen(const Options& options,
                                                           TaskRunner& runner, Listener& listener);
  // Stops listening and removes the socket file; the lock is released.
  ~TapServer();
  TapServer(const TapServer&) = delete;
  TapServer& operator=(const TapServer&) = delete;

 private:
  TapServer(std::string path, UniqueFd lock, UniqueFd socket, TaskRunner& runner,
            Listener& listener);
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
  Listener& listener_;
  // Cancels the end of a pause when the server is destroyed.
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
