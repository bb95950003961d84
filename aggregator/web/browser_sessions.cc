// SPDX-License-Identifier: Apache-2.0
#include "aggregator/web/browser_sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "lib/base/sha256.h"
#include "lib/base/status.h"

namespace neurontrace {

bool BrowserSessions::HasExpired(const Session& session, uint64_t now_ns) const {
  return now_ns - session.used_ns >= limits::kPageSessionIdleNs ||
         now_ns - session.began_ns >= limits::kPageSessionNs;
}

// At most kPageSessionsMax are examined, and only when somebody signs in or metrics are published.
void BrowserSessions::Expire(uint64_t now_ns) {
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    if (!HasExpired(*it, now_ns)) {
      ++it;
      continue;
    }
    by_key_.erase(it->key);
    it = sessions_.erase(it);
    ++counts_.expired;
  }
}

void BrowserSessions::MakeRoom(const std::string& caller) {
  const auto of_caller = [&caller](const Session& session) { return session.caller == caller; };
  const auto count = std::ranges::count_if(sessions_, of_caller);
  if (static_cast<size_t>(count) < limits::kPageSessionsOfCallerMax) return;
  const auto oldest = std::find_if(sessions_.rbegin(), sessions_.rend(), of_caller);
  by_key_.erase(oldest->key);
  sessions_.erase(std::next(oldest).base());
  ++counts_.displaced;
}

absl::StatusOr<std::string> BrowserSessions::Begin(const std::string& caller,
                                                   const std::string& token) {
  const MutexLock lock(mutex_);
  const uint64_t now_ns = clock_.MonotonicNs();
  Expire(now_ns);
  MakeRoom(caller);
  if (sessions_.size() >= limits::kPageSessionsMax) {
    ++counts_.refused;
    return ResourceExhausted(
        "{} browsers have signed in, which is the limit; sign out in one of them, or try again "
        "later",
        sessions_.size());
  }
  std::string cookie;
  for (int i = 0; i < 4; ++i) cookie += fmt::format("{:016x}", random_.Next64());
  sessions_.push_front({.key = Sha256HexOf(cookie),
                        .caller = caller,
                        .token = token,
                        .began_ns = now_ns,
                        .used_ns = now_ns});
  by_key_.emplace(sessions_.front().key, sessions_.begin());
  assert(by_key_.size() == sessions_.size());
  ++counts_.begun;
  return cookie;
}

std::optional<std::string> BrowserSessions::TokenOf(const std::string& cookie) {
  const std::string key = Sha256HexOf(cookie);
  const MutexLock lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  const uint64_t now_ns = clock_.MonotonicNs();
  if (HasExpired(*found->second, now_ns)) {
    sessions_.erase(found->second);
    by_key_.erase(found);
    ++counts_.expired;
    return std::nullopt;
  }
  sessions_.splice(sessions_.begin(), sessions_, found->second);
  sessions_.front().used_ns = now_ns;
  return sessions_.front().token;
}

void BrowserSessions::End(const std::string& cookie) {
  const std::string key = Sha256HexOf(cookie);
  const MutexLock lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return;
  sessions_.erase(found->second);
  by_key_.erase(found);
  ++counts_.signed_out;
}

BrowserSessions::Counts BrowserSessions::counts() {
  const MutexLock lock(mutex_);
  Expire(clock_.MonotonicNs());
  Counts counts = counts_;
  counts.open = sessions_.size();
  return counts;
}

}  // namespace neurontrace
