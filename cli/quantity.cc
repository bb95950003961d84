// SPDX-License-Identifier: Apache-2.0
#include "cli/quantity.h"

#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "cli/text.h"
#include "lib/base/quantity.h"
#include "lib/base/status.h"

namespace neurontrace::cli {
namespace {

// A number and the text after it, which refers to the parsed text.
struct Amount {
  double value = 0;
  std::string_view unit;
};

// Parses a number that is not negative, and the text after it. Returns false if there is none. No
// exponents, signs or infinities are accepted.
bool ParseAmount(std::string_view text, Amount& amount) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount.value,
                                            std::chars_format::fixed);
  amount.unit = std::string_view(end, static_cast<size_t>(text.data() + text.size() - end));
  return error == std::errc() && std::isfinite(amount.value) && !std::signbit(amount.value);
}

}  // namespace

absl::StatusOr<uint64_t> ParseBytes(std::string_view text) {
  ASSIGN_OR_RETURN(const uint64_t bytes, ParseByteSize(text));
  // A bare number might be meant as MB, so that a unit is required.
  if (bytes != 0 && text.find_first_not_of("0123456789") == std::string_view::npos) {
    return InvalidArgument("'{}' has no unit; write it like 2GB, 64MiB, or {}B", text, text);
  }
  if (bytes == 0) return InvalidArgument("'{}': the size must be greater than 0", text);
  return bytes;
}

absl::StatusOr<uint64_t> ParseByteRate(std::string_view text) {
  constexpr std::string_view kPerSecond = "/s";
  std::string_view size = text;
  if (size.ends_with(kPerSecond)) size.remove_suffix(kPerSecond.size());
  if (const auto bytes = ParseBytes(size); bytes.ok()) return *bytes;
  return InvalidArgument("'{}' is not a rate; write it like 10MB/s", text);
}

absl::StatusOr<uint32_t> ParseProcessorShare(std::string_view text) {
  Amount amount;
  if (ParseAmount(text, amount) && amount.unit == "%") {
    const double millionths = amount.value * 1e4;
    // Smaller shares would be rounded to 0, which means no budget.
    if (millionths >= 1 && millionths <= 1e6) {
      return static_cast<uint32_t>(std::lround(millionths));
    }
  }
  return InvalidArgument("'{}' is not a share of a processor; write it like 2% or 0.5%", text);
}

absl::StatusOr<std::vector<v1::GidRange>> ParseGidRanges(std::string_view text) {
  std::vector<v1::GidRange> ranges;
  for (const std::string& item : SplitList({std::string(text)})) {
    // Every failure below reports the whole item.
    const auto wrong = [&] {
      return InvalidArgument("'{}' is not a range of worker_gids; write it like 0-7,64", item);
    };
    v1::GidRange range;
    int64_t first = 0;
    int64_t last = 0;
    const char* const end = item.data() + item.size();
    auto [at, error] = std::from_chars(item.data(), end, first);
    if (error != std::errc() || first < 0) return wrong();
    last = first;
    if (at != end) {
      if (*at != '-') return wrong();
      const auto [stop, second] = std::from_chars(at + 1, end, last);
      if (second != std::errc() || stop != end) return wrong();
    }
    if (last < first) return wrong();
    range.set_first(first);
    range.set_last(last);
    ranges.push_back(range);
  }
  return ranges;
}

absl::StatusOr<v1::KeyValue> ParseKeyValue(std::string_view text) {
  // The first sign separates, as values may contain others.
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) {
    return InvalidArgument("'{}' is not of the form KEY=VALUE", text);
  }
  v1::KeyValue pair;
  pair.set_key(std::string(text.substr(0, equals)));
  pair.set_value(std::string(text.substr(equals + 1)));
  return pair;
}

absl::StatusOr<uint32_t> ParseRequirement(std::string_view text) {
  if (text == "all") return 100;
  if (text == "any") return 0;
  Amount amount;
  if (ParseAmount(text, amount) && amount.unit == "%" && amount.value >= 1 && amount.value <= 100 &&
      amount.value == std::floor(amount.value)) {
    return static_cast<uint32_t>(amount.value);
  }
  return InvalidArgument("'{}' is not one of: all, any, or a percentage of the workers (90%)",
                         text);
}

absl::StatusOr<uint64_t> ParseSpan(std::string_view option, std::string_view text) {
  ASSIGN_OR_RETURN(const uint64_t ns, ParseDuration(text));
  if (ns == 0) return InvalidArgument("{} {}: must be greater than 0", option, text);
  return ns;
}

}  // namespace neurontrace::cli
