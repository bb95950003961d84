// SPDX-License-Identifier: Apache-2.0
#include "aggregator/web/sign_in_throttle.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cassert>

#include "lib/base/sha256.h"

namespace neurontrace {
namespace {

constexpr uint64_t kBurstNs = limits::kSignInFailuresAtOnce * limits::kSignInPauseNs;

// Returns what tells addresses apart in "ipv4:10.0.0.9:4711" and "ipv6:[2001:db8::1]:4711".
std::string AddressOf(std::string_view peer) {
  const std::string_view address = peer.substr(0, peer.rfind(':'));
  constexpr std::string_view kIpv6 = "ipv6:[";
  if (!address.starts_with(kIpv6) || !address.ends_with(']')) return std::string(address);
  const std::string text(address.substr(kIpv6.size(), address.size() - kIpv6.size() - 1));
  in6_addr bytes{};
  if (inet_pton(AF_INET6, text.c_str(), &bytes) != 1) return std::string(address);
  constexpr size_t kNetworkBytes = 8;
  return HexOf({reinterpret_cast<const char*>(bytes.s6_addr), kNetworkBytes});
}

}  // namespace

bool SignInThrottle::IsTryAllowed(std::string_view peer) {
  const std::string address = AddressOf(peer);
  const MutexLock lock(mutex_);
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return true;
  const uint64_t due_ns = found->second->due_ns;
  if (due_ns + limits::kSignInPauseNs <= clock_.MonotonicNs() + kBurstNs) return true;
  ++refused_;
  return false;
}

void SignInThrottle::RecordFailure(std::string_view peer) {
  const std::string address = AddressOf(peer);
  const MutexLock lock(mutex_);
  const auto found = by_address_.find(address);
  if (found != by_address_.end()) {
    accounts_.splice(accounts_.begin(), accounts_, found->second);
  } else {
    if (accounts_.size() >= limits::kSignInAddressesMax) {
      by_address_.erase(accounts_.back().address);
      accounts_.pop_back();
    }
    accounts_.push_front({.address = address});
    by_address_.emplace(address, accounts_.begin());
  }
  assert(by_address_.size() == accounts_.size());
  Account& account = accounts_.front();
  account.due_ns = std::max(account.due_ns, clock_.MonotonicNs()) + limits::kSignInPauseNs;
}

uint64_t SignInThrottle::refused() const {
  const MutexLock lock(mutex_);
  return refused_;
}

}  // namespace neurontrace
