// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/clock/probe_packet.h"

namespace neurontrace {

// An IPv4 or IPv6 socket address.
struct ProbeAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

// What an agent needs to probe over UDP: the address and a key (docs/formats/probe.md). The
// aggregator sends port and key in the Report call.
struct ProbeAccess {
  ProbeAddress address;
  // Tells the aggregator which key authenticates a question.
  uint64_t key_id = 0;
  ProbeKey key{};
};

// Returns the address of the machine that a gRPC call is connected to, with another port. `peer` is
// as grpc::ClientContext::peer() gives it: "ipv4:10.0.0.5:9400", "ipv6:%5Bfd00::5%5D:9400". Fails
// with INVALID_ARGUMENT for anything else, such as the path of a Unix socket. Pure.
absl::StatusOr<ProbeAddress> ProbeAddressOfPeer(std::string_view peer, uint16_t port);

}  // namespace neurontrace
