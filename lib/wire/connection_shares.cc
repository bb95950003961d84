// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/connection_shares.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "lib/trace/access_limits.h"
#include "lib/wire/peer_slots.h"

namespace neurontrace {

ConnectionShares::ConnectionShares(int descriptors_max)
    : peers_(static_cast<size_t>(descriptors_max)) {}

ConnectionShares::Peer ConnectionShares::PeerOf(const sockaddr_storage& name) {
  in6_addr address = {};
  uint16_t port = 0;
  if (name.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(name);
    // As IPv6 maps IPv4, so that one client counts as one address on either socket.
    address.s6_addr[10] = address.s6_addr[11] = 0xff;
    std::memcpy(&address.s6_addr[12], &four.sin_addr, sizeof four.sin_addr);
    port = four.sin_port;
  } else if (name.ss_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(name);
    address = six.sin6_addr;
    port = six.sin6_port;
  }
  Peer peer;
  std::memcpy(&peer.high, &address.s6_addr[0], sizeof peer.high);
  std::memcpy(&peer.low, &address.s6_addr[8], sizeof peer.low);
  peer.port = port;
  return peer;
}

// The share shrinks as descriptors get scarce, so that one address cannot take the last ones, while
// few addresses may use nearly all.
bool ConnectionShares::Take(int connection, const sockaddr_storage& name) {
  Peer& known = peers_[static_cast<size_t>(connection)];
  // The descriptor was assigned again, so its former connection has been closed.
  Forget(known);
  const Peer peer = PeerOf(name);
  const auto own = sizes_.find({peer.high, peer.low});
  // accept returns the lowest free number: all below it are in use, some by files.
  const size_t used = std::max(size_, static_cast<size_t>(connection));
  const size_t share = limits::kGrpcConnectionsPerFree * (peers_.size() - used);
  if ((own == sizes_.end() ? 0 : own->second) >= share) return false;
  known = peer;
  ++sizes_[{peer.high, peer.low}];
  ++size_;
  return true;
}

void ConnectionShares::Sweep() {
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].port == 0) continue;
    sockaddr_storage name = {};
    socklen_t size = sizeof name;
    // The descriptor may belong to another connection by now, or to a file.
    const bool is_open =
        getpeername(static_cast<int>(i), reinterpret_cast<sockaddr*>(&name), &size) == 0;
    if (!is_open || PeerOf(name) != peers_[i]) Forget(peers_[i]);
  }
}

std::set<std::string> ConnectionShares::Addresses() const {
  std::set<std::string> addresses;
  for (const auto& [address, connections] : sizes_) {
    sockaddr_storage name = {};
    auto& six = reinterpret_cast<sockaddr_in6&>(name);
    six.sin6_family = AF_INET6;
    std::memcpy(&six.sin6_addr.s6_addr[0], &address.first, sizeof address.first);
    std::memcpy(&six.sin6_addr.s6_addr[8], &address.second, sizeof address.second);
    addresses.insert(AddressText(name));
  }
  return addresses;
}

// No effect on an entry without a connection.
void ConnectionShares::Forget(Peer& peer) {
  if (peer.port == 0) return;
  const auto found = sizes_.find({peer.high, peer.low});
  if (--found->second == 0) sizes_.erase(found);
  peer = {};
  --size_;
}

}  // namespace neurontrace
