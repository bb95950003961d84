// SPDX-License-Identifier: Apache-2.0
#include "wire/address.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

namespace neurontrace {

std::string CheckAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  const bool is_bare_ipv6 = address.find(':') != colon && !address.starts_with('[');
  if (colon == std::string::npos || colon == 0 || is_bare_ipv6) {
    return fmt::format("'{}' is no address: write HOST:PORT, as 127.0.0.1:9400 or [::1]:9400",
                       address);
  }
  uint16_t port = 0;
  const char* const end = address.data() + address.size();
  const auto [rest, error] = std::from_chars(address.data() + colon + 1, end, port);
  if (error != std::errc() || rest != end) {
    return fmt::format("'{}': the port is a number from 0 to 65535", address);
  }
  return "";
}

bool IsLoopback(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  // 127.0.0.0/8 as numbers: 127.example.org is a name that leads anywhere.
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos;
}

}  // namespace neurontrace
