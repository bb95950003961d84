// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/task_runner.h"

namespace neurontrace {

// Asks how much of the disk under a directory is free for this process. statfs(2) on a broken
// network volume blocks, so the question is put on the spool's thread and free_bytes() returns the
// latest answer. Used from the agent's sequence; the answer crosses by atomics.
class DiskRoom {
 public:
  // `io` outlives this. A task that runs after this was destroyed does no harm, as it shares
  // answer_.
  DiskRoom(std::string directory, TaskRunner& io) : directory_(std::move(directory)), io_(io) {}

  // Starts a query on `io`, unless one is still running, so that a disk that hangs collects no
  // tasks.
  void Ask();
  // Returns the bytes available to an unprivileged process. Empty before the first answer and after
  // a failed one.
  std::optional<uint64_t> free_bytes() const;

 private:
  struct Answer {
    // A query is on its way; is_known tells whether `bytes` holds an answer.
    std::atomic<bool> is_awaited = false;
    std::atomic<bool> is_known = false;
    std::atomic<uint64_t> bytes = 0;
  };

  const std::string directory_;
  TaskRunner& io_;
  // Shared with the task, which may outlive this.
  const std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
};

}  // namespace neurontrace
