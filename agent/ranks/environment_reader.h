// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace {

// Reads numbers out of a worker's environment. Anything that is set and not what it should be is
// told to `warnings`, once per variable, and counts as not set. Ranks and counts stay below 2^31,
// so that products of a rank and a core count cannot overflow.
class EnvironmentReader {
 public:
  using Environment = std::map<std::string, std::string, std::less<>>;
  static constexpr int64_t kNumberMax = (int64_t{1} << 31) - 1;
  static constexpr size_t kListEntriesMax = 65'536;

  // Both outlive the reader.
  EnvironmentReader(const Environment& environment, std::vector<std::string>& warnings)
      : environment_(environment), warnings_(warnings) {}

  // A number >= 0.
  std::optional<int64_t> Number(std::string_view name) const;
  // A number > 0.
  std::optional<int64_t> Count(std::string_view name) const;
  // Comma-separated numbers >= 0; empty when not set.
  std::vector<int64_t> Numbers(std::string_view name) const;
  // Where the vendor's core list (`4`, `4-7`, `4,5`) begins.
  std::optional<int64_t> FirstOfRange(std::string_view name) const;

 private:
  const std::string* Find(std::string_view name) const;
  void Warn(std::string_view name, std::string_view value, std::string_view expected) const;

  const Environment& environment_;
  std::vector<std::string>& warnings_;
};

}  // namespace neurontrace
