// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace neurontrace {

// Who has how many of a port's connections, where somebody else closes them: by their descriptors,
// of which one that is given out anew was closed before, and what the kernel says of the rest. One
// address has at most three times as many as are free: three quarters where nobody else is there.
// One thread.
class ConnectionShares {
 public:
  // Of connections on descriptors below `descriptors_max`.
  explicit ConnectionShares(int descriptors_max);

  // Notes the connection, of `peer`, as accept4 gave both; false: its address has its share, and
  // the connection is to be closed.
  bool Take(int connection, const sockaddr_storage& peer);
  // Asks the kernel about each connection, and forgets those that were closed.
  void Sweep();

  size_t size() const { return size_; }
  // The addresses that have connections, as AddressText says them.
  std::set<std::string> Addresses() const;

 private:
  struct Peer {
    uint64_t high = 0, low = 0;  // the address; one of IPv4 as IPv6 maps it
    uint16_t port = 0;           // 0: no connection
    friend auto operator<=>(const Peer&, const Peer&) = default;
  };
  using Address = std::pair<uint64_t, uint64_t>;

  static Peer PeerOf(const sockaddr_storage& name);
  void Forget(Peer& peer);

  std::vector<Peer> peers_;          // by descriptor
  std::map<Address, size_t> sizes_;  // of the addresses that have connections
  size_t size_ = 0;
};

}  // namespace neurontrace
