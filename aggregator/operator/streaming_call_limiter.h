// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace neurontrace {

// The calls of one kind that hold a thread, and what else they need, for as long as their reader
// likes: exports, and watches of captures. There are so many at once, of all callers and of each,
// and who does not read what was sent is not waited for without end. Any thread.
class StreamingCallLimiter {
 public:
  // All of it outlives this.
  struct Options {
    const Clock& clock;
    std::string what;  // for people: "exports"
    size_t at_once_max = 0;
    size_t of_caller_max = 0;
    prometheus::Counter& refused;  // for lack of a place
    prometheus::Counter& unread;   // ended, as nobody read
  };
  explicit StreamingCallLimiter(Options options) : options_(std::move(options)) {}

  // A place among them, and the place at which it writes. Of the call's thread.
  class Call {
   public:
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // `write` may wait for the reader; what it says.
    bool Write(const std::function<bool()>& write);
    // DEADLINE_EXCEEDED where the call was ended because nobody read, else `status`.
    absl::Status Judge(absl::Status status) const;

   private:
    friend class StreamingCallLimiter;
    Call(StreamingCallLimiter& owner, std::string caller, std::function<void()> cancel)
        : owner_(owner), caller_(std::move(caller)), cancel_(std::move(cancel)) {}

    StreamingCallLimiter& owner_;
    const std::string caller_;
    const std::function<void()> cancel_;
    std::atomic<uint64_t> writing_since_ns_ = 0;  // monotonic; 0: it does not write
    std::atomic<bool> is_unread_ = false;
  };

  // RESOURCE_EXHAUSTED with words where there is no room, for all or for this caller. `cancel`
  // makes a write that waits return; it is called on another thread, and must not wait.
  absl::StatusOr<std::unique_ptr<Call>> Take(const std::string& caller,
                                             std::function<void()> cancel);
  // About once a second: ends the calls whose reader took nothing for limits::kUnreadNsMax.
  void Look();

 private:
  const Options options_;
  Mutex mutex_;
  std::list<Call*> calls_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
