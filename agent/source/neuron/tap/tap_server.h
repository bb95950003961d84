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

// The agent's door for taps: a unix socket in the file system. On the agent's sequence.
class TapServer {
 public:
  struct Options {
    std::string path;
    mode_t mode = 0660;  // of the socket: who may connect
    int group = -1;      // that owns it; -1: the agent's own
  };
  using Accepted = std::function<void(UniqueFd socket)>;

  // Listens. The directory is made if it is not there (one level). A socket left by an agent that
  // is gone is replaced; a lock file beside it (`path`.lock) tells that from an agent that runs:
  // FAILED_PRECONDITION. INVALID_ARGUMENT for a path that is too long or holds something else than
  // a socket. `accepted` is called for each connection, while `may_accept` says so: others wait.
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
