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

// Reads numbers out of a worker's environment. A variable that is set and not what it should be
// counts as not set and adds a warning, once per variable. Ranks and counts stay below 2^31, so
// that products of a rank and a core count cannot overflow.
class EnvironmentReader {
 public:
  using Environment = std::map<std::string, std::string, std::less<>>;
  static constexpr int64_t kNumberMax = (int64_t{1} << 31) - 1;
  static constexpr size_t kListEntriesMax = 65'536;
  static constexpr size_t kCoreListMax = 1'024;

  // Both outlive the reader.
  EnvironmentReader(const Environment& environment, std::vector<std::string>& warnings)
      : environment_(environment), warnings_(warnings) {}

  // Whether the variable is set and not blank.
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  // The value without surrounding blanks; empty where it is not set.
  std::string_view Text(std::string_view name) const;
  // A number >= 0.
  std::optional<int64_t> Number(std::string_view name) const;
  // A number > 0.
  std::optional<int64_t> Count(std::string_view name) const;
  // The first of the variables that is set, which should be a number > 0.
  std::optional<int64_t> FirstCount(std::initializer_list<const char*> names) const;
  // A number > 0. Adds no warning where it is something else, such as "auto" or "1:4".
  std::optional<int64_t> CountIfNumber(std::string_view name) const;
  // Comma-separated numbers >= 0; empty when not set.
  std::vector<int64_t> Numbers(std::string_view name) const;
  // The core numbers of a list such as `0,2,4-5`, in its order; empty when not set, when a number
  // is listed twice, or when there are more than kCoreListMax.
  std::vector<int64_t> CoreList(std::string_view name) const;
  // The largest count of a list such as Slurm's `4(x2),3`.
  std::optional<int64_t> LargestCount(std::string_view name) const;

 private:
  const std::string* Find(std::string_view name) const;
  void Warn(std::string_view name, std::string_view value, std::string_view expected) const;

  const Environment& environment_;
  std::vector<std::string>& warnings_;
};

}  // namespace neurontrace
