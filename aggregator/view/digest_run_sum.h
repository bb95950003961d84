// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace neurontrace {

// Consecutive bins that have the same value. Bin N of width W is [N * W, (N + 1) * W) in raw time.
struct DigestRun {
  uint64_t begin = 0;  // the first bin
  uint64_t count = 1;
  uint64_t value = 0;
  friend bool operator==(const DigestRun&, const DigestRun&) = default;
};

// Adds runs of bins up. A plain value.
class DigestRunSum {
 public:
  void Add(const DigestRun& run);
  // Adds a run of bins that are narrower by this factor.
  void AddFolded(const DigestRun& run, uint64_t factor);
  // Returns the runs of bins whose sum is not 0, in their order, as few as possible.
  std::vector<DigestRun> Take();

 private:
  // By how much the value changes at a bin, modulo 2^64.
  std::vector<std::pair<uint64_t, uint64_t>> edges_;
};

}  // namespace neurontrace
