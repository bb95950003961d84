// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/registry.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "aggregator/access/call_rates.h"
#include "aggregator/access/token_reviewer.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {

// Determines which service account a Kubernetes token belongs to, asking the API server as rarely
// as possible. Answers are cached by the token's SHA-256, no longer than the token states that it
// is valid. Calls with the same token share one request. Concurrent requests, requests per second
// and waiting calls are limited, and calls beyond are refused at once.
//
// Tokens that were good before have their own share, so that a flood of others cannot lock them
// out. Any thread; callers wait for an answer. Used by Authenticator for tokens that the access
// file does not know.
class TokenReviews {
 public:
  // `reviewer` is asked on several threads, without a lock held. `clock` must outlive this.
  // `tokens_max` limits the cache and is smaller in tests.
  TokenReviews(std::string audience, std::unique_ptr<TokenReviewer> reviewer, const Clock& clock,
               prometheus::Registry& registry, size_t tokens_max = limits::kTokensKnownMax);

  // Returns "NAMESPACE/NAME". `can_pass` is asked about the account that the token claims; if no
  // rule would admit it, the server is not asked. Fails with UNAUTHENTICATED for an invalid token,
  // and with UNAVAILABLE if that cannot be determined now. Blocks for as long as a review takes, or
  // until another call's request for the same token has an answer.
  absl::StatusOr<std::string> AccountOf(const std::string& token,
                                        const std::function<bool(std::string_view)>& can_pass);

 private:
  using Answer = absl::StatusOr<std::optional<std::string>>;
  // One token of the cache. It is not removed while it is asked or waited for.
  struct Known {
    std::string hash;
    Answer answer = std::optional<std::string>();
    uint64_t until_ns = 0;  // monotonic
    bool was_good = false;
    bool is_asked = false;  // a request is under way; the answer is the previous one
    size_t waiting = 0;     // calls that wait for it
  };
  // The order of use decides which one is forgotten.
  using KnownTokens = std::list<Known>;  // most recent first
  // The two shares of requests.
  enum Kind : size_t { kNew, kGoodBefore, kKinds };

  // Returns the account by the cache or by asking; `token` has passed the cheap checks.
  absl::StatusOr<std::string> Review(const std::string& token);
  // Returns the entry and makes it the most recent one; nullptr if there is none.
  Known* Find(const std::string& hash) NT_REQUIRES(mutex_);
  // Adds an entry, and removes the oldest one that is not in use if the cache is full.
  Known& Add(const std::string& hash) NT_REQUIRES(mutex_);
  // Counts a request if the share of `kind` permits one now.
  bool CanQuery(Kind kind) NT_REQUIRES(mutex_);
  // Stores an answer with the time for which its kind is valid, and counts it.
  void Keep(Known& known, Answer answer) NT_REQUIRES(mutex_);

  const std::string audience_;
  const std::unique_ptr<TokenReviewer> reviewer_;
  const Clock& clock_;
  const size_t tokens_max_;
  // Counters by result.
  prometheus::Family<prometheus::Counter>& reviews_;
  prometheus::Counter& good_;
  prometheus::Counter& bad_;
  prometheus::Counter& failed_;
  prometheus::Counter& held_back_;
  prometheus::Counter& forgotten_;
  // Counts each Kind as one caller.
  CallRates rates_;
  // Not held while the server is asked.
  Mutex mutex_;
  // Notified when a request has an answer.
  CondVar answered_;
  KnownTokens tokens_ NT_GUARDED_BY(mutex_);
  std::unordered_map<std::string, KnownTokens::iterator> by_hash_ NT_GUARDED_BY(mutex_);
  // Requests that are under way, by Kind.
  std::array<size_t, kKinds> asking_ NT_GUARDED_BY(mutex_){};
  size_t waiting_ NT_GUARDED_BY(mutex_) = 0;       // calls that wait for a request of another call
  bool is_failing_ NT_GUARDED_BY(mutex_) = false;  // the last request had no answer
};

}  // namespace neurontrace
