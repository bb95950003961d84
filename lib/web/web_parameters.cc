// SPDX-License-Identifier: Apache-2.0
#include "lib/web/web_parameters.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "lib/base/clean_text.h"

namespace neurontrace {

std::string_view CookieValue(std::string_view cookies, std::string_view name) {
  while (!cookies.empty()) {
    const size_t end = std::min(cookies.find(';'), cookies.size());
    std::string_view cookie = cookies.substr(0, end);
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
    while (cookie.starts_with(' ')) cookie.remove_prefix(1);
    if (cookie.starts_with(name) && cookie.substr(name.size()).starts_with('=')) {
      return cookie.substr(name.size() + 1);
    }
  }
  return {};
}

std::string_view ParameterOf(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) {
      return pair.substr(name.size() + 1);
    }
  }
  return {};
}

// Invalid escapes stay as they are (WHATWG URL standard, application/x-www-form-urlencoded).
std::string DecodedParameterOf(std::string_view query, std::string_view name) {
  const std::string_view text = ParameterOf(query, name);
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

std::string WithoutParameter(std::string_view query, std::string_view name) {
  std::string rest;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) continue;
    rest += (rest.empty() ? "" : "&") + std::string(pair);
  }
  return rest;
}

std::string HostName(std::string_view host) {
  if (!host.ends_with(']')) {
    const size_t colon = host.rfind(':');
    if (colon != std::string_view::npos) host = host.substr(0, colon);
  }
  std::string name(host);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = Utf8SequenceBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace neurontrace
