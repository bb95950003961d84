// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/view_request.h"

#include <charconv>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Decodes "%20" and "+" (WHATWG URL standard, application/x-www-form-urlencoded). An invalid escape
// stays as it is.
std::string Decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      out += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

// Parses a whole number from `min` to `max`.
template <typename Number>
absl::Status ParseNumber(std::string_view key, std::string_view text, uint64_t min, uint64_t max,
                         Number& out) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < min || number > max) {
    return InvalidArgument("{}: '{}' is not a whole number from {} to {}", key, text.substr(0, 64),
                           min, max);
  }
  out = static_cast<Number>(number);
  return absl::OkStatus();
}

absl::Status ParseStreams(std::string_view text, std::vector<uint32_t>& out) {
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    uint32_t number = 0;
    RETURN_IF_ERROR(ParseNumber("streams", text.substr(0, comma), 0, UINT32_MAX, number));
    if (out.size() == limits::kViewStreamsMax) {
      return InvalidArgument("streams: more than {} numbers", limits::kViewStreamsMax);
    }
    out.push_back(number);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return absl::OkStatus();
}

absl::Status SetParameter(std::string_view key, const std::string& value, ViewRequest& request) {
  if (key == "from") return ParseNumber(key, value, 0, INT64_MAX - 1, request.from_ns.emplace());
  if (key == "to") return ParseNumber(key, value, 1, INT64_MAX, request.to_ns.emplace());
  if (key == "px") return ParseNumber(key, value, 1, limits::kViewPixelsMax, request.pixels);
  if (key == "columns") {
    return ParseNumber(key, value, 1, limits::kViewColumnsMax, request.columns);
  }
  if (key == "lines") return ParseNumber(key, value, 1, limits::kViewHeatLinesMax, request.lines);
  if (key == "limit") return ParseNumber(key, value, 1, limits::kViewHitsMax, request.limit);
  if (key == "cursor") {
    return value.empty() ? absl::OkStatus()
                         : ParseNumber(key, value, 0, UINT64_MAX, request.cursor);
  }
  if (key == "streams") return ParseStreams(value, request.streams);
  if (key == "depth") return ParseNumber(key, value, 1, limits::kViewChainDepthMax, request.depth);
  if (key == "breadth") {
    return ParseNumber(key, value, 1, limits::kViewChainBreadthMax, request.breadth);
  }
  if (key == "q") {
    request.query = value;
  } else if (key == "metric") {
    request.metric = value;
  } else if (key == "by") {
    request.by = value;
  } else if (key == "sort") {
    request.sort = value;
  } else if (key == "event") {
    request.event = value;
  } else if (key == "chain") {
    request.chain = value;
  } else {
    return InvalidArgument(
        "'{}' is not a parameter; there are from, to, px, columns, lines, limit, cursor, "
        "streams, q, metric, by, sort, event, chain, depth and breadth",
        key.substr(0, 64));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ViewRequest> ViewRequest::Parse(std::string_view query) {
  ViewRequest request;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string key = Decoded(pair.substr(0, equals));
    const std::string value = Decoded(pair.substr(std::min(equals + 1, pair.size())));
    RETURN_IF_ERROR(SetParameter(key, value, request));
  }
  return request;
}

}  // namespace neurontrace
