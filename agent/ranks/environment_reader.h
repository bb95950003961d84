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

// Reads numbers and lists from a worker's environment. A variable with an invalid value counts as
// not set and adds a warning, once per variable and value. Ranks and counts stay below 2^31, so
// that the product of a rank and a core count cannot overflow. One thread; the functions are const
// because only `warnings` changes.
class EnvironmentReader {
 public:
  using Environment = std::map<std::string, std::string, std::less<>>;
  static constexpr int64_t kNumberMax = (int64_t{1} << 31) - 1;
  static constexpr size_t kListEntriesMax = 65'536;
  static constexpr size_t kCoreListMax = 1'024;

  // Both arguments outlive the reader.
  EnvironmentReader(const Environment& environment, std::vector<std::string>& warnings)
      : environment_(environment), warnings_(warnings) {}

  // Returns true if the variable is set and not blank.
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  // Returns the value without surrounding blanks; empty if it is not set.
  std::string_view Text(std::string_view name) const;
  // Returns a number of 0 or more. Returns nothing if the variable is not set or is no such number.
  std::optional<int64_t> Number(std::string_view name) const;
  // Returns a number above 0.
  std::optional<int64_t> Count(std::string_view name) const;
  // Returns the first of the variables that is set, if it is a number above 0.
  std::optional<int64_t> FirstCount(std::initializer_list<const char*> names) const;
  // Returns a number above 0. Other values, such as "auto" or "1:4", give nothing and no warning.
  std::optional<int64_t> CountIfNumber(std::string_view name) const;
  // Returns a list of comma-separated numbers of 0 or more; empty if the variable is not set or
  // invalid.
  std::vector<int64_t> Numbers(std::string_view name) const;
  // Returns the core numbers of a list such as `0,2,4-5`, in its order. Empty if the variable is
  // not set, if a number appears twice, or if there are more than kCoreListMax.
  std::vector<int64_t> CoreList(std::string_view name) const;
  // Returns the largest count of a list such as Slurm's `4(x2),3`.
  std::optional<int64_t> LargestCount(std::string_view name) const;

 private:
  const std::string* Find(std::string_view name) const;
  void Warn(std::string_view name, std::string_view value, std::string_view expected) const;

  const Environment& environment_;
  std::vector<std::string>& warnings_;
};

}  // namespace neurontrace
