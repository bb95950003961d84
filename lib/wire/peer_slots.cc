// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/peer_slots.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>

#include <algorithm>
#include <cassert>
#include <iterator>

namespace neurontrace {
namespace {

// A socket of IPv6 that also accepts IPv4 reports its peers as ::ffff:a.b.c.d (RFC 4291, section
// 2.5.5.2).
bool IsMappedIpv4(const sockaddr_storage& name) {
  return name.ss_family == AF_INET6 &&
         IN6_IS_ADDR_V4MAPPED(&reinterpret_cast<const sockaddr_in6&>(name).sin6_addr);
}

}  // namespace

std::string AddressText(const sockaddr_storage& name) {
  char text[INET6_ADDRSTRLEN] = {};
  const void* address = nullptr;
  int family = name.ss_family;
  if (family == AF_INET) {
    address = &reinterpret_cast<const sockaddr_in&>(name).sin_addr;
  } else if (family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(name);
    family = IsMappedIpv4(name) ? AF_INET : AF_INET6;
    address = IsMappedIpv4(name) ? &six.sin6_addr.s6_addr[12] : &six.sin6_addr.s6_addr[0];
  }
  if (address == nullptr || inet_ntop(family, address, text, sizeof text) == nullptr) return "";
  return text;
}

std::string PeerText(const sockaddr_storage& name) {
  // The port is at the same offset in sockaddr_in and sockaddr_in6.
  const uint16_t port = ntohs(reinterpret_cast<const sockaddr_in&>(name).sin_port);
  const bool is_four = name.ss_family == AF_INET || IsMappedIpv4(name);
  return is_four ? fmt::format("ipv4:{}:{}", AddressText(name), port)
                 : fmt::format("ipv6:[{}]:{}", AddressText(name), port);
}

// An address keeps its slot while it is in it. A new one gets a slot with the fewest addresses,
// after those whose connections have ended are removed.
size_t PeerSlots::Assign(const std::string& host,
                         const std::function<bool(const std::string& host)>& is_connected) {
  const MutexLock lock(mutex_);
  size_t best = 0;
  assert(!slots_.empty());
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].contains(host)) return i;
    if (slots_[i].size() < slots_[best].size()) best = i;
  }
  // Addresses are removed from slots only when a free one is needed, as is_connected is expensive.
  if (!slots_[best].empty()) {
    for (size_t i = 0; i < slots_.size(); ++i) {
      std::erase_if(slots_[i], [&](const std::string& known) { return !is_connected(known); });
      if (slots_[i].size() < slots_[best].size()) best = i;
    }
  }
  slots_[best].insert(host);
  return best;
}

// Returns "" for a slot that has never been assigned.
std::string PeerSlots::Describe(size_t slot) const {
  const MutexLock lock(mutex_);
  assert(slot < slots_.size());
  return DescribeOneOf({slots_[slot].begin(), slots_[slot].end()});
}

std::string DescribeOneOf(const std::vector<std::string>& peers) {
  if (peers.empty()) return "";
  if (peers.size() == 1) return peers.front();
  const size_t named = std::min(peers.size(), kPeersNamedMax);
  const auto end = peers.begin() + static_cast<std::ptrdiff_t>(named);
  std::string text = fmt::format("one of {}", fmt::join(peers.begin(), end, ", "));
  if (named < peers.size()) text += fmt::format(" and {} more", peers.size() - named);
  return text;
}

}  // namespace neurontrace
