// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

namespace neurontrace {

// How many bytes of chunks may be received and not yet durable, over all agents. While it is spent
// nothing more is read from anybody, which HTTP/2 flow control makes the agents feel; each call
// exceeds it by at most the one message that it was reading. Any thread.
class IngestBudget {
 public:
  explicit IngestBudget(size_t bytes_max) : bytes_max_(bytes_max) {}

  void Take(size_t bytes);
  // Lets those go on that wait for room, on this thread.
  void Release(size_t bytes);

  // Runs `go_on` now if there is room, else when there is, in the order of asking. It must be
  // quick.
  void WhenRoom(std::function<void()> go_on);

  size_t bytes() const;

 private:
  const size_t bytes_max_;
  mutable std::mutex mutex_;
  size_t bytes_ = 0;                           // guarded by mutex_
  std::deque<std::function<void()>> waiting_;  // guarded by mutex_; at most one a call
};

}  // namespace neurontrace
