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

// Limits calls of one kind that hold a thread for as long as their client likes: exports, and
// watches of captures. Their number is limited in total and per caller, and a call whose client
// stops reading is cancelled. Any thread.
class StreamingCallLimiter {
 public:
  // Everything referred to must outlive this.
  struct Options {
    const Clock& clock;
    std::string what;  // for messages, in the plural: "exports"
    size_t at_once_max = 0;
    size_t of_caller_max = 0;
    prometheus::Counter& refused;  // calls beyond a limit
    prometheus::Counter& unread;   // calls cancelled because nobody read
  };
  explicit StreamingCallLimiter(Options options) : options_(std::move(options)) {}

  // A place among the calls, given back by its destructor. Used on the call's thread; must not
  // outlive the limiter.
  class Call {
   public:
    // Gives the place back.
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // Runs `write`, which may wait for the reader, and returns its result. At most one at a time.
    bool Write(const std::function<bool()>& write);
    // Returns DEADLINE_EXCEEDED if the call was cancelled because nobody read, otherwise `status`.
    absl::Status Judge(absl::Status status) const;

   private:
    friend class StreamingCallLimiter;
    Call(StreamingCallLimiter& owner, std::string caller, std::function<void()> cancel)
        : owner_(owner), caller_(std::move(caller)), cancel_(std::move(cancel)) {}

    StreamingCallLimiter& owner_;
    const std::string caller_;
    const std::function<void()> cancel_;
    std::atomic<uint64_t> writing_since_ns_ = 0;  // monotonic; 0: not in Write
    std::atomic<bool> is_unread_ = false;
  };

  // Fails with RESOURCE_EXHAUSTED, and says which limit, if there is no place. `cancel` makes a
  // waiting write return; it is called on another thread with a lock held, and must neither wait
  // nor call back.
  absl::StatusOr<std::unique_ptr<Call>> Take(const std::string& caller,
                                             std::function<void()> cancel);
  // Called about once a second: cancels calls whose reader took nothing for limits::kUnreadNsMax.
  void Poll();

 private:
  const Options options_;
  // Held while a call is cancelled, so that the call cannot be destroyed meanwhile.
  Mutex mutex_;
  // Owned by their callers, which remove them in the destructor.
  std::list<Call*> calls_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
