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
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "aggregator/access/call_rates.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {

// Which service account a token of Kubernetes is, by an API server, which is asked as seldom as can
// be: answers are kept for a while, by the token's SHA-256, and count no longer than the token says
// that it is good; one question is asked for all calls that show the same token; so many questions
// are under way, and are begun a second, and calls beyond are refused at once. Tokens that were
// good before have places of their own, so that a flood of others does not lock them out. Any
// thread; callers wait for an answer.
class TokenReviews {
 public:
  // "NAMESPACE/NAME"; nothing: the server says that the token is nobody's. UNAVAILABLE where it
  // says nothing. Called from several threads; ends by itself within seconds.
  using Ask = std::function<absl::StatusOr<std::optional<std::string>>(const std::string& token)>;

  // `clock` outlives it.
  TokenReviews(std::string audience, Ask ask, const Clock& clock, prometheus::Registry& registry,
               size_t tokens_max = limits::kTokensKnownMax);

  // "NAMESPACE/NAME". `may_pass`: of the account that the token claims to be; where nobody would
  // let that one pass, nobody is asked. UNAUTHENTICATED for one that is none, UNAVAILABLE where
  // that cannot be found out now.
  absl::StatusOr<std::string> AccountOf(const std::string& token,
                                        const std::function<bool(std::string_view)>& may_pass);

 private:
  using Answer = absl::StatusOr<std::optional<std::string>>;
  struct Known {
    std::string hash;
    Answer answer = std::optional<std::string>();
    uint64_t until_ns = 0;  // monotonic
    bool was_good = false;
    bool is_asked = false;  // somebody is about it, and the answer is of before
    size_t waiting = 0;     // calls, for that
  };
  using KnownTokens = std::list<Known>;  // who called last first
  enum Kind : size_t { kNew, kGoodBefore, kKinds };

  absl::StatusOr<std::string> Review(const std::string& token);
  Known* Find(const std::string& hash) NT_REQUIRES(mutex_);
  Known& Add(const std::string& hash) NT_REQUIRES(mutex_);
  bool MayAsk(Kind kind) NT_REQUIRES(mutex_);
  void Keep(Known& known, Answer answer) NT_REQUIRES(mutex_);

  const std::string audience_;
  const Ask ask_;
  const Clock& clock_;
  const size_t tokens_max_;
  prometheus::Family<prometheus::Counter>& reviews_;
  prometheus::Counter& good_;
  prometheus::Counter& bad_;
  prometheus::Counter& failed_;
  prometheus::Counter& held_back_;
  prometheus::Counter& forgotten_;
  CallRates rates_;
  Mutex mutex_;
  CondVar answered_;
  KnownTokens tokens_ NT_GUARDED_BY(mutex_);
  std::unordered_map<std::string, KnownTokens::iterator> by_hash_ NT_GUARDED_BY(mutex_);
  std::array<size_t, kKinds> asking_ NT_GUARDED_BY(mutex_){};
  size_t waiting_ NT_GUARDED_BY(mutex_) = 0;       // for what others ask
  bool is_failing_ NT_GUARDED_BY(mutex_) = false;  // the last question had no answer
};

}  // namespace neurontrace
