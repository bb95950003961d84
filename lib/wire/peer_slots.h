// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/mutex.h"

namespace neurontrace {

// Host part of a socket address, as text: "10.0.0.9", "fe80::1"; an IPv4 address that IPv6 maps is
// that of IPv4.
std::string AddressText(const sockaddr_storage& name);
// With its port, as gRPC writes it: "ipv4:10.0.0.9:4711", "ipv6:[fe80::1]:4711".
std::string PeerText(const sockaddr_storage& name);

// Returns "" for no peer, the peer for one, else "one of A, B, C, D and 3 more", which names at
// most kPeersNamedMax of them, in their order.
inline constexpr size_t kPeersNamedMax = 4;
std::string DescribeOneOf(const std::vector<std::string>& peers);

// Distributes peers over a few slots. gRPC judges a call by the credentials of the port that its
// connection came in by, and does not say whose it is (auth_metadata_processor.h): with credentials
// of its own each slot knows. A slot has one address as long as fewer addresses are connected than
// there are slots. Any thread.
class PeerSlots {
 public:
  explicit PeerSlots(size_t slots) : slots_(slots) {}

  size_t size() const {
    const MutexLock lock(mutex_);
    return slots_.size();
  }
  // The slot of a new connection of `host`. `is_connected` says of any host whether it still has
  // connections; it is asked where a slot would get a second address.
  size_t Assign(const std::string& host,
                const std::function<bool(const std::string& host)>& is_connected);
  // Whose the connections of a slot are: "10.0.0.9", or "one of 10.0.0.9, 10.0.0.12 and 3 more";
  // empty: nobody's.
  std::string Describe(size_t slot) const;

 private:
  mutable Mutex mutex_;
  std::vector<std::set<std::string>> slots_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
