// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/probe_access.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstring>
#include <string>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Replaces every occurrence of `from`, which must not be empty.
void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

absl::StatusOr<ProbeAddress> ProbeAddressOfPeer(std::string_view peer, uint16_t port) {
  const auto bad = [&] { return InvalidArgument("'{}' is not an IP address", peer); };
  const bool is_v6 = peer.starts_with("ipv6:");
  if (!is_v6 && !peer.starts_with("ipv4:")) return bad();
  std::string host(peer.substr(5));
  // gRPC percent-encodes the characters that a URI must not contain.
  for (const auto& [from, to] : {std::pair{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}}) {
    ReplaceAll(host, from, to);
  }
  // The port follows the last colon, since an IPv6 address is in brackets.
  const size_t colon = host.rfind(':');
  if (colon == std::string::npos) return bad();
  host.resize(colon);
  ProbeAddress address;
  if (!is_v6) {
    auto& four = reinterpret_cast<sockaddr_in&>(address.storage);
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    address.length = sizeof(four);
    if (inet_pton(AF_INET, host.c_str(), &four.sin_addr) != 1) return bad();
    return address;
  }
  if (!host.starts_with('[') || !host.ends_with(']')) return bad();
  host = host.substr(1, host.size() - 2);
  auto& six = reinterpret_cast<sockaddr_in6&>(address.storage);
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  address.length = sizeof(six);
  // A link-local address needs the interface that it is valid on; inet_pton(3) does not parse it.
  if (const size_t scope = host.find('%'); scope != std::string::npos) {
    six.sin6_scope_id = if_nametoindex(host.c_str() + scope + 1);
    host.resize(scope);
  }
  if (inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) != 1) return bad();
  return address;
}

}  // namespace neurontrace
