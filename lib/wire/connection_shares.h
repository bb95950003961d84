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

// Counts the connections of a port by address although gRPC closes them: a descriptor that is
// assigned again was closed before, and the kernel reports the others. One address may hold at most
// limits::kGrpcConnectionsPerFree times as many connections as are free: three quarters of all if
// it is the only one. One thread.
class ConnectionShares {
 public:
  // Counts connections on descriptors below `descriptors_max`.
  explicit ConnectionShares(int descriptors_max);

  // Counts a connection, with the descriptor and peer that accept4 returned. Returns false if its
  // address has its share: the caller closes the connection.
  bool Take(int connection, const sockaddr_storage& peer);
  // Asks the kernel for the peer of each connection, and forgets the closed ones.
  void Sweep();

  size_t size() const { return size_; }
  // Returns the addresses that have connections, as AddressText writes them.
  std::set<std::string> Addresses() const;

 private:
  // The other end of a connection.
  struct Peer {
    uint64_t high = 0, low = 0;  // the address; IPv4 as IPv6 maps it
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
