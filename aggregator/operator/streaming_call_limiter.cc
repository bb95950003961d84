// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/streaming_call_limiter.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "lib/base/status.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {

StreamingCallLimiter::Call::~Call() {
  const MutexLock lock(owner_.mutex_);
  owner_.calls_.remove(this);
}

bool StreamingCallLimiter::Call::Write(const std::function<bool()>& write) {
  assert(writing_since_ns_ == 0);  // one write at a time
  // Zero means that the call is not writing.
  writing_since_ns_ = std::max<uint64_t>(owner_.options_.clock.MonotonicNs(), 1);
  const bool was_taken = write();
  writing_since_ns_ = 0;
  return was_taken;
}

absl::Status StreamingCallLimiter::Call::Judge(absl::Status status) const {
  if (!is_unread_) return status;
  return absl::DeadlineExceededError(
      fmt::format("the client has not read for {} s", limits::kUnreadNsMax / 1'000'000'000));
}

// Counts by looking at all calls, which are few.
absl::StatusOr<std::unique_ptr<StreamingCallLimiter::Call>> StreamingCallLimiter::Take(
    const std::string& caller, std::function<void()> cancel) {
  const MutexLock lock(mutex_);
  const auto of_caller = static_cast<size_t>(std::count_if(
      calls_.begin(), calls_.end(), [&](const Call* call) { return call->caller_ == caller; }));
  if (calls_.size() >= options_.at_once_max) {
    options_.refused.Increment();
    return ResourceExhausted(
        "this aggregator has reached its limit of {} {} at once; try again when one has ended",
        calls_.size(), options_.what);
  }
  if (of_caller >= options_.of_caller_max) {
    options_.refused.Increment();
    return ResourceExhausted(
        "{} has reached the limit of {} {} per caller; try again when one has ended", caller,
        of_caller, options_.what);
  }
  auto call = std::unique_ptr<Call>(new Call(*this, caller, std::move(cancel)));
  calls_.push_back(call.get());
  assert(calls_.size() <= options_.at_once_max);
  return call;
}

// Only a call inside Write can be stuck. One that has nothing to write is not the client's fault.
void StreamingCallLimiter::Poll() {
  const uint64_t now_ns = options_.clock.MonotonicNs();
  const MutexLock lock(mutex_);
  for (Call* const call : calls_) {
    const uint64_t since_ns = call->writing_since_ns_;
    if (since_ns == 0 || now_ns < since_ns + limits::kUnreadNsMax) continue;
    // Cancelled once; the call needs time to return.
    if (call->is_unread_.exchange(true)) continue;
    options_.unread.Increment();
    call->cancel_();
  }
}

}  // namespace neurontrace
