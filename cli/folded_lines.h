// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace::cli {

// Lines about many workers: those that report the same about different workers are folded into the
// first of them and a count. Two lines report the same if they differ only in numbers and in the
// given names (instances, jobs). A plain value, used for certificates and warnings.
class FoldedLines {
 public:
  // With `fold` false every line is kept.
  explicit FoldedLines(std::set<std::string> names, bool fold = true)
      : names_(std::move(names)), fold_(fold) {}

  // Adds a line without its newline.
  void Add(std::string line);
  // Returns one line for each group, in the order of their first lines, with "(and 31 more like
  // this)".
  std::string Format() const;

 private:
  // Returns the line with numbers and names replaced by signs, which is equal for lines to fold.
  std::string PatternOf(std::string_view line) const;

  struct Group {
    std::string line;  // the first
    size_t count = 0;
  };
  std::set<std::string> names_;
  bool fold_;
  std::vector<Group> groups_;
  std::map<std::string, size_t> group_of_;  // by pattern
};

}  // namespace neurontrace::cli
