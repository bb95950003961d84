// SPDX-License-Identifier: Apache-2.0
#include "health/host_names.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace neurontrace {
namespace {

std::string LowerHostName(std::string_view host) {
  std::string name(host);
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name.size() > 1 && name.ends_with('.')) name.pop_back();
  return name;
}

bool IsAddress(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> ignored = {};
  return inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
}

bool IsPort(std::string_view text) {
  return text.size() <= 5 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool IsUnregistrable(const std::string& name) {
  if (name.find('.') == std::string::npos) return true;
  constexpr std::array<std::string_view, 5> kSuffixes = {".localhost", ".local", ".internal",
                                                         ".home.arpa", ".test"};
  return std::ranges::any_of(kSuffixes,
                             [&name](std::string_view suffix) { return name.ends_with(suffix); });
}

}  // namespace

bool IsOwnHost(std::string_view host, std::span<const std::string> names) {
  if (host.empty()) return true;
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    if (end == std::string_view::npos) return false;
    const std::string_view rest = host.substr(end + 1);
    const bool is_port = rest.empty() || (rest.starts_with(':') && IsPort(rest.substr(1)));
    return is_port && IsAddress(std::string(host.substr(1, end - 1)));
  }
  if (const size_t colon = host.find(':'); colon != std::string_view::npos) {
    if (!IsPort(host.substr(colon + 1))) return false;
    host = host.substr(0, colon);
  }
  const std::string name = LowerHostName(host);
  // Names have letters, digits, hyphens, dots, and in practice underscores.
  const bool is_name = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
  });
  if (!is_name) return false;
  if (IsAddress(name) || IsUnregistrable(name)) return true;
  return std::ranges::any_of(
      names, [&name](const std::string& own) { return LowerHostName(own) == name; });
}

}  // namespace neurontrace
