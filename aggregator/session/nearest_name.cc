// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/nearest_name.h"

#include <algorithm>
#include <vector>

namespace neurontrace {

size_t EditDistance(std::string_view a, std::string_view b) {
  // Three rows of the matrix: the distances of the first i characters of a to each beginning of b.
  std::vector<size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = last;
    last = row;
  }
  return last[b.size()];
}

std::string NearestName(std::string_view name, std::span<const std::string> names) {
  // Who asks may have asked for anything, and names of people's and of clouds are shorter.
  constexpr size_t kComparedBytesMax = 64;
  if (name.size() > kComparedBytesMax) return "";
  std::string nearest;
  size_t least = std::max<size_t>(name.size() / 3, 1) + 1;
  for (const std::string& other : names) {
    // What is left out at an end is left out on purpose.
    const bool is_part = name.size() >= 4 && other.find(name) != std::string::npos;
    if (!is_part && other.size() > 2 * kComparedBytesMax) continue;  // is not near
    const size_t distance = is_part ? 1 : EditDistance(name, other);
    if (distance >= least) continue;
    least = distance;
    nearest = other;
  }
  return nearest;
}

}  // namespace neurontrace
