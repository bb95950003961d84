// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/s3_xml.h"

#include <charconv>
#include <cstdint>
#include <ctime>

#include "aggregator/deliver/file_time.h"

namespace neurontrace {
namespace {

// Returns an empty text for an unknown entity. Numbers are limited to ASCII, which is all that keys
// of ours and codes of services need.
std::string Entity(std::string_view name) {
  if (name == "amp") return "&";
  if (name == "lt") return "<";
  if (name == "gt") return ">";
  if (name == "quot") return "\"";
  if (name == "apos") return "'";
  if (!name.starts_with('#')) return "";
  name.remove_prefix(1);
  const bool is_hex = name.starts_with('x');
  if (is_hex) name.remove_prefix(1);
  uint32_t code = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, code, is_hex ? 16 : 10);
  if (error != std::errc() || rest != end || code == 0 || code > 0x7f) return "";
  return std::string(1, static_cast<char>(code));
}

}  // namespace

std::vector<std::string_view> XmlElements(std::string_view xml, std::string_view name) {
  std::vector<std::string_view> elements;
  const std::string end_tag = "</" + std::string(name) + ">";
  const std::string begin_tag = "<" + std::string(name);
  size_t at = 0;
  while ((at = xml.find(begin_tag, at)) != std::string_view::npos) {
    at += begin_tag.size();
    // An element whose name only begins like this one.
    if (at >= xml.size() || (xml[at] != '>' && xml[at] != ' ')) continue;
    const size_t begin = xml.find('>', at);
    if (begin == std::string_view::npos) break;
    // Elements of one name do not nest in these replies, so that the next end is the right one.
    const size_t end = xml.find(end_tag, begin);
    if (end == std::string_view::npos) break;
    elements.push_back(xml.substr(begin + 1, end - begin - 1));
    at = end + end_tag.size();
  }
  return elements;
}

std::string XmlText(std::string_view xml, std::string_view name) {
  const auto elements = XmlElements(xml, name);
  if (elements.empty()) return "";
  std::string_view rest = elements.front();
  std::string text;
  while (!rest.empty()) {
    const size_t ampersand = rest.find('&');
    text += rest.substr(0, ampersand);
    if (ampersand == std::string_view::npos) break;
    rest.remove_prefix(ampersand + 1);
    const size_t end = rest.find(';');
    if (end == std::string_view::npos) break;
    text += Entity(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return text;
}

// The fraction and the zone are ignored: S3 writes UTC, and a second is exact enough for leases and
// for the end of credentials.
uint64_t ParseS3Time(const std::string& text) {
  std::tm time = {};
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time) == nullptr) return 0;
  return FileTimeNs(timegm(&time), 0);
}

}  // namespace neurontrace
