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

// Returns the host part of a socket address as text: "10.0.0.9", "fe80::1". An IPv4 address mapped
// into IPv6 is shown as IPv4. "" for other families.
std::string AddressText(const sockaddr_storage& name);
// Returns address and port as gRPC writes them: "ipv4:10.0.0.9:4711", "ipv6:[fe80::1]:4711".
std::string PeerText(const sockaddr_storage& name);

// Returns "" for no peer, the peer for one, else "one of A, B, C, D and 3 more", which names at
// most kPeersNamedMax of them, in their order.
inline constexpr size_t kPeersNamedMax = 4;
std::string DescribeOneOf(const std::vector<std::string>& peers);

// Distributes peers over a few slots. gRPC judges a call by the credentials of the port through
// which its connection came, and does not report the peer to them (auth_metadata_processor.h). With
// credentials of its own each slot knows its peers. A slot has a single address while at most as
// many addresses are connected as there are slots. Any thread.
class PeerSlots {
 public:
  explicit PeerSlots(size_t slots) : slots_(slots) {}

  size_t size() const {
    const MutexLock lock(mutex_);
    return slots_.size();
  }
  // Returns the slot of a new connection of `host`. `is_connected` returns whether a host still has
  // connections; it is called if a slot would otherwise get a second address.
  size_t Assign(const std::string& host,
                const std::function<bool(const std::string& host)>& is_connected);
  // Returns the addresses of a slot as DescribeOneOf does.
  std::string Describe(size_t slot) const;

 private:
  mutable Mutex mutex_;
  std::vector<std::set<std::string>> slots_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
