// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Addresses as people write them: HOST:PORT, where an IPv6 host is in brackets. The functions are
// pure: they resolve no name and may be called from any thread. Text from outside appears in
// messages only after CleanText.
namespace neurontrace {

// An address in its two parts, as ParseHostPort returns it.
struct HostPort {
  std::string host;  // an IPv6 host without its brackets
  uint16_t port = 0;
};

// Parses HOST:PORT. Fails with INVALID_ARGUMENT if the host is not a name or a number of IPv4 or
// IPv6, or the port is not a decimal number from 0 to 65535.
absl::StatusOr<HostPort> ParseHostPort(std::string_view address);

// Parses a port from 0 to 65535: decimal digits and nothing else.
absl::StatusOr<uint16_t> ParsePort(std::string_view text);

// Returns what is wrong with an address to listen on, or "". Port 0 means any free port. The form
// fits CLI11's check().
std::string CheckAddress(const std::string& address);

// Returns what is wrong with an address to connect to, or "". Its port must be 1 to 65535, as
// nothing can connect to port 0.
std::string CheckPeerAddress(const std::string& address);

// Returns the status of a program that cannot listen, with the option that sets the address in
// front, and the way out if the port is taken.
absl::Status DescribeListenFailure(std::string_view option, const absl::Status& status);

// Returns true for addresses that only this machine reaches: localhost, [::1] and 127.0.0.0/8 with
// any port. Decides where traffic without TLS and without tokens is allowed, so any doubt must
// return false.
bool IsLoopback(const std::string& address);

}  // namespace neurontrace
