// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/task_runner.h"

namespace neurontrace {

// What the disk under a directory has left for this process. Asks on a thread that may wait for the
// disk; whoever wants to know gets what it last said. One thread but for that.
class DiskRoom {
 public:
  // `io` outlives this or is at its end; tasks that are left there do no harm.
  DiskRoom(std::string directory, TaskRunner& io) : directory_(std::move(directory)), io_(io) {}

  // Has the disk asked, unless it has yet to answer the last time.
  void Ask();
  // Bytes; nothing before the first answer, and while the disk gives none.
  std::optional<uint64_t> free_bytes() const;

 private:
  struct Answer {
    std::atomic<bool> is_awaited = false;
    std::atomic<bool> is_known = false;
    std::atomic<uint64_t> bytes = 0;
  };

  const std::string directory_;
  TaskRunner& io_;
  const std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
};

}  // namespace neurontrace
