// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/base/random.h"
#include "lib/trace/web_limits.h"

namespace neurontrace {

// The browsers that have signed in with a token. A browser gets 256 random bits in a cookie; the
// token stays here and is presented again with each of its requests, so that a token that is no
// longer valid ends its sessions. A session ends limits::kPageSessionIdleNs after its last request,
// and limits::kPageSessionNs after it began. Of one caller at most kPageSessionsOfCallerMax are
// kept: beyond, its least recently used one ends. Beyond kPageSessionsMax of all callers a new one
// is refused. Any thread.
class BrowserSessions {
 public:
  // How many sessions have ended for which reason, and how many were refused.
  struct Counts {
    uint64_t begun = 0;
    uint64_t refused = 0;     // beyond kPageSessionsMax
    uint64_t signed_out = 0;  // or their token is no longer valid
    uint64_t expired = 0;     // idle, or too old
    uint64_t displaced = 0;   // by a later one of the same caller
    size_t open = 0;
  };

  // Both must outlive this. `random` is used by one thread at a time.
  BrowserSessions(const Clock& clock, Random& random) : clock_(clock), random_(random) {}

  // Begins a session of a caller, whose token was accepted. Returns the value of its cookie. Fails
  // with RESOURCE_EXHAUSTED.
  absl::StatusOr<std::string> Begin(const std::string& caller, const std::string& token);
  // Returns the token of a session that has not ended, and restarts its idle time.
  std::optional<std::string> TokenOf(const std::string& cookie);
  // Ends a session. Does nothing if there is none.
  void End(const std::string& cookie);

  Counts counts();

 private:
  struct Session {
    std::string key;  // of by_key_
    std::string caller;
    std::string token;
    uint64_t began_ns = 0;  // monotonic, as the next
    uint64_t used_ns = 0;
  };
  using Sessions = std::list<Session>;  // the most recently used one first

  bool HasExpired(const Session& session, uint64_t now_ns) const;
  // Removes what has expired at `now_ns`.
  void Expire(uint64_t now_ns) NT_REQUIRES(mutex_);
  // Ends the least recently used session of a caller that has as many as it may.
  void MakeRoom(const std::string& caller) NT_REQUIRES(mutex_);

  const Clock& clock_;
  Random& random_;
  Mutex mutex_;
  Sessions sessions_ NT_GUARDED_BY(mutex_);
  // By the SHA-256 of the cookie, so that the time of a look-up tells nothing about cookies.
  std::unordered_map<std::string, Sessions::iterator> by_key_ NT_GUARDED_BY(mutex_);
  Counts counts_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
