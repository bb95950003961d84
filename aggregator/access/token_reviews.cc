// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/token_reviews.h"

#include <spdlog/spdlog.h>

#include <cassert>
#include <utility>

#include "aggregator/access/token_review.h"
#include "lib/base/sha256.h"
#include "lib/base/status.h"
#include "lib/health/metric_builders.h"

namespace neurontrace {
namespace {

// Returns UNAUTHENTICATED with a message.
template <typename... Args>
absl::Status NotKnown(fmt::format_string<Args...> format, Args&&... args) {
  return MakeStatus(absl::StatusCode::kUnauthenticated, format, std::forward<Args>(args)...);
}

// Returns what a caller gets that has to wait its turn.
absl::Status TooManyTokens() {
  return Unavailable(
      "too many service account tokens are being verified at once; try again in a second");
}

// Converts a cached answer to the result of AccountOf.
absl::StatusOr<std::string> ToAccount(const absl::StatusOr<std::optional<std::string>>& answer) {
  RETURN_IF_ERROR(answer.status());
  if (*answer) return **answer;
  return NotKnown(
      "the API server rejects the token: its pod or service account no longer exists, or the "
      "audience differs");
}

}  // namespace

// The name of the limit is empty, because its messages are never shown.
TokenReviews::TokenReviews(std::string audience, std::unique_ptr<TokenReviewer> reviewer,
                           const Clock& clock, prometheus::Registry& registry, size_t tokens_max)
    : audience_(std::move(audience)),
      reviewer_(std::move(reviewer)),
      clock_(clock),
      tokens_max_(tokens_max),
      reviews_(MakeCounterFamily(
          registry, "neurontrace_aggregator_token_reviews_total",
          "Verifications of service account tokens by the API server, by result")),
      good_(reviews_.Add({{"result", "good"}})),
      bad_(reviews_.Add({{"result", "bad"}})),
      failed_(reviews_.Add({{"result", "failed"}})),
      held_back_(reviews_.Add({{"result", "held_back"}})),
      forgotten_(MakeCounter(
          registry, "neurontrace_aggregator_tokens_forgotten_total",
          "Cached verifications of service account tokens evicted before they expired")),
      rates_(clock, {limits::kTokenReviewsPerSecondMax, limits::kTokenReviewsBurstMax}, "",
             forgotten_) {}

// The claims are checked first, as anybody can send tokens: only those that could be accepted reach
// the API server.
absl::StatusOr<std::string> TokenReviews::AccountOf(
    const std::string& token, const std::function<bool(std::string_view)>& can_pass) {
  const auto claims = ReadTokenClaims(token, audience_);
  if (!claims)
    return NotKnown("the token is neither known to the aggregator nor a service account token");
  if (!claims->is_for_audience) {
    return NotKnown(
        "the token of {} is not for the audience {}; request it with that audience (`audience` of "
        "the pod's serviceAccountToken, or kubectl create token --audience)",
        claims->service_account, audience_);
  }
  if (clock_.RealtimeNs() >= claims->expires_realtime_ns) {
    return NotKnown("the token of {} has expired", claims->service_account);
  }
  // A token that would be refused anyway is no question for the API server.
  if (!can_pass(claims->service_account)) {
    return NotKnown(
        "the token belongs to {}, but no rule of the aggregator's --access file has this "
        "service-account",
        claims->service_account);
  }
  return Review(token);
}

// There are three cases: a valid answer in the cache, a request of another call to wait for, or a
// request of its own.
absl::StatusOr<std::string> TokenReviews::Review(const std::string& token) {
  const std::string hash = Sha256HexOf(token);
  MutexLock lock(mutex_);
  Known* known = Find(hash);
  if (known != nullptr && clock_.MonotonicNs() < known->until_ns) return ToAccount(known->answer);
  // Another call asks already: its answer is this one's, too.
  if (known != nullptr && known->is_asked) {
    if (waiting_ >= limits::kTokenWaitersMax) {
      held_back_.Increment();
      return TooManyTokens();
    }
    ++waiting_;
    // Keeps the entry in the cache while this call waits.
    ++known->waiting;
    answered_.Wait(mutex_, [known] { return !known->is_asked; });
    assert(known->waiting > 0 && waiting_ > 0);
    --known->waiting;
    --waiting_;
    return ToAccount(known->answer);
  }
  // The share depends on whether the token was good when it was last checked.
  const Kind kind = known != nullptr && known->was_good ? kGoodBefore : kNew;
  if (!CanQuery(kind)) {
    held_back_.Increment();
    return TooManyTokens();
  }
  if (known == nullptr) known = &Add(hash);
  known->is_asked = true;
  ++asking_[kind];
  // Not under the lock: a request takes up to seconds. The entry cannot be removed while is_asked.
  lock.Unlock();
  Answer answer = reviewer_->Review(token);
  lock.Lock();
  assert(known->is_asked && asking_[kind] > 0);
  --asking_[kind];
  known->is_asked = false;
  // The waiting calls read the answer under the lock, so it is stored before they wake.
  Keep(*known, std::move(answer));
  absl::StatusOr<std::string> account = ToAccount(known->answer);
  lock.Unlock();
  answered_.NotifyAll();
  return account;
}

// Moves the entry to the front.
TokenReviews::Known* TokenReviews::Find(const std::string& hash) {
  const auto found = by_hash_.find(hash);
  assert(by_hash_.size() == tokens_.size());
  if (found == by_hash_.end()) return nullptr;
  tokens_.splice(tokens_.begin(), tokens_, found->second);
  return &tokens_.front();
}

TokenReviews::Known& TokenReviews::Add(const std::string& hash) {
  // Entries that are in use are fewer than the table holds, so one can be removed.
  for (auto oldest = tokens_.end(); tokens_.size() >= tokens_max_ && oldest != tokens_.begin();) {
    --oldest;
    if (oldest->is_asked || oldest->waiting > 0) continue;
    if (clock_.MonotonicNs() < oldest->until_ns) forgotten_.Increment();
    by_hash_.erase(oldest->hash);
    oldest = tokens_.erase(oldest);
  }
  tokens_.push_front({.hash = hash});
  by_hash_.emplace(hash, tokens_.begin());
  return tokens_.front();
}

// The number of requests is checked first, so that a refusal costs nothing of the rate.
bool TokenReviews::CanQuery(Kind kind) {
  return asking_[kind] < limits::kTokenReviewsAtOnceMax &&
         rates_.Take(kind == kGoodBefore ? "good before" : "new").ok();
}

// An answer is kept longer if the token is good, and only briefly if the server failed, as it may
// recover at any moment.
void TokenReviews::Keep(Known& known, Answer answer) {
  uint64_t kept_ns = limits::kTokenFailedNs;
  if (!answer.ok()) {
    failed_.Increment();
    if (!is_failing_) SPDLOG_ERROR("tokens: {}", std::string(answer.status().message()));
    is_failing_ = true;
    // The caller is unknown so far and must learn nothing about the cluster.
    answer = Unavailable(
        "cannot verify the token because the API server does not answer; try again, and see the "
        "aggregator's log");
  } else {
    if (is_failing_) SPDLOG_INFO("tokens: the API server answers again");
    is_failing_ = false;
    const bool is_good = answer->has_value();
    (is_good ? good_ : bad_).Increment();
    known.was_good = is_good;
    kept_ns = is_good ? limits::kTokenGoodNs : limits::kTokenBadNs;
  }
  known.answer = std::move(answer);
  known.until_ns = clock_.MonotonicNs() + kept_ns;
}

}  // namespace neurontrace
