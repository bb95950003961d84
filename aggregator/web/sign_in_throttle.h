// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/trace/web_limits.h"

namespace neurontrace {

// Limits how often somebody may try tokens: after limits::kSignInFailuresAtOnce wrong ones an
// address may try one each kSignInPauseNs. Right tokens cost nothing, so that many people behind
// one address can sign in. Of IPv6 a network of 64 bits counts as an address. Remembers
// kSignInAddressesMax addresses; beyond, the one that has not failed for the longest time is
// forgotten. Any thread. An address's state is one number (the generic cell rate algorithm).
class SignInThrottle {
 public:
  // `clock` must outlive this.
  explicit SignInThrottle(const Clock& clock) : clock_(clock) {}

  // Returns whether the peer, as gRPC writes it, may present a token now. Counts refusals.
  bool IsTryAllowed(std::string_view peer);
  // Called after a wrong token.
  void RecordFailure(std::string_view peer);
  // Returns how many tries were refused.
  uint64_t refused() const;

 private:
  struct Account {
    std::string address;
    uint64_t due_ns = 0;  // monotonic; when the whole allowance is available again
  };
  using Accounts = std::list<Account>;  // the one that failed last comes first

  const Clock& clock_;
  mutable Mutex mutex_;
  Accounts accounts_ NT_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Accounts::iterator> by_address_ NT_GUARDED_BY(mutex_);
  uint64_t refused_ NT_GUARDED_BY(mutex_) = 0;
};

}  // namespace neurontrace
