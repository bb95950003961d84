// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/clock/probe_packet.h"

namespace neurontrace {

// A socket address of either family.
struct ProbeAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

// What an agent needs in order to probe over UDP: where, and with which key. It comes through the
// control call.
struct ProbeAccess {
  ProbeAddress address;
  uint64_t key_id = 0;
  ProbeKey key{};
};

// The machine that a gRPC call goes to, as gRPC names it ("ipv4:10.0.0.5:9400",
// "ipv6:%5Bfd00::5%5D:9400"), with another port. INVALID_ARGUMENT for what is no internet address,
// as the path of a unix socket.
absl::StatusOr<ProbeAddress> ProbeAddressOfPeer(std::string_view peer, uint16_t port);

}  // namespace neurontrace
