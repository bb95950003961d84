// SPDX-License-Identifier: Apache-2.0
#include "lib/base/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// RFC 1035 allows 255 octets on the wire, which are 253 characters without the last dot.
constexpr size_t kHostBytesMax = 253;
constexpr size_t kShownAddressBytesMax = 300;

// Wider than RFC 1123 by the underscore, which names of Kubernetes and of Docker contain. Whether a
// name exists is for the resolver to say; this check only finds typing errors before a daemon
// starts.
constexpr std::string_view kHostCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";

// A link-local number may name its link behind a percent sign (RFC 4007), which inet_pton does not
// accept.
bool IsIpv6(std::string_view host) {
  const std::string number(host.substr(0, host.find('%')));
  in6_addr ignored = {};
  return inet_pton(AF_INET6, number.c_str(), &ignored) == 1;
}

// Returns whether the text has the form of a host name or of an IPv4 number.
bool IsName(std::string_view host) {
  return !host.empty() && host.size() <= kHostBytesMax && host.front() != '-' &&
         host.find_first_not_of(kHostCharacters) == std::string_view::npos;
}

}  // namespace

absl::StatusOr<uint16_t> ParsePort(std::string_view text) {
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc() || rest != end) {
    return InvalidArgument("'{}' is not a port; use a number from 0 to 65535",
                           CleanText(text, kShownAddressBytesMax));
  }
  return port;
}

namespace {

// The port is taken from the last colon, so that an IPv6 host without brackets fails as a host
// instead of losing its last group to the port.
absl::StatusOr<HostPort> ParseAddress(std::string_view address, uint16_t lowest_port) {
  const std::string shown = CleanText(address, kShownAddressBytesMax);
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) {
    return InvalidArgument(
        "'{}' has no port; write HOST:PORT, such as 127.0.0.1:9400 or [::1]:9400", shown);
  }
  std::string_view host = address.substr(0, colon);
  const bool is_bracketed = host.starts_with('[') && host.ends_with(']');
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  if (is_bracketed ? !IsIpv6(host) : !IsName(host)) {
    return InvalidArgument(
        "'{}' is not an address; write HOST:PORT, such as 127.0.0.1:9400 or [::1]:9400", shown);
  }
  const auto port = ParsePort(address.substr(colon + 1));
  if (!port.ok()) {
    return InvalidArgument("'{}': the port must be a number from {} to 65535", shown, lowest_port);
  }
  return HostPort{std::string(host), *port};
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(std::string_view address) {
  return ParseAddress(address, 0);
}

std::string CheckAddress(const std::string& address) {
  return std::string(ParseHostPort(address).status().message());
}

std::string CheckPeerAddress(const std::string& address) {
  const auto parsed = ParseAddress(address, 1);
  if (!parsed.ok()) return std::string(parsed.status().message());
  if (parsed->port != 0) return "";
  return fmt::format("'{}': port 0 cannot be connected to; use the port that the server listens on",
                     address);
}

// The text is that of the system, which every listener has in its message.
absl::Status DescribeListenFailure(std::string_view option, const absl::Status& status) {
  const std::string message(status.message());
  const bool is_taken = message.find("in use") != std::string::npos;
  return FailedPrecondition("{}: {}{}", option, message,
                            is_taken ? "; end the program that uses the port, which may be an "
                                       "earlier start of this one, or choose another port"
                                     : "");
}

bool IsLoopback(const std::string& address) {
  // Only texts are compared: resolving a name here would let a DNS answer decide whether TLS is
  // required.
  const std::string host = address.substr(0, address.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  // Only four decimal numbers are an address of 127.0.0.0/8. Anything else that begins with 127,
  // such as 127.example.org or 127.1.2.3.4, is a name that may resolve to any machine.
  in_addr ignored = {};
  return host.starts_with("127.") && inet_pton(AF_INET, host.c_str(), &ignored) == 1;
}

}  // namespace neurontrace
