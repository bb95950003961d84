// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/digest_run_sum.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>

namespace neurontrace {

// Events come in the order of time, so that most runs are the one before.
void DigestRunSum::Add(const DigestRun& run) {
  if (run.value == 0) return;
  const uint64_t end = run.begin + run.count;
  if (edges_.size() >= 2 && edges_.back().first == end && edges_.rbegin()[1].first == run.begin) {
    edges_.back().second -= run.value;
    edges_.rbegin()[1].second += run.value;
    return;
  }
  edges_.emplace_back(run.begin, run.value);
  edges_.emplace_back(end, 0 - run.value);
}

void DigestRunSum::AddFolded(const DigestRun& run, uint64_t factor) {
  assert(std::has_single_bit(factor) && run.count > 0);
  const uint64_t end = run.begin + run.count;
  // The whole bins inside, and what is left of it at both ends.
  const uint64_t first_whole = run.begin / factor + (run.begin % factor == 0 ? 0 : 1);
  const uint64_t end_whole = end / factor;
  if (first_whole > end_whole) return Add({run.begin / factor, 1, run.value * run.count});
  if (const uint64_t head = first_whole * factor - run.begin; head > 0) {
    Add({first_whole - 1, 1, run.value * head});
  }
  if (end_whole > first_whole) Add({first_whole, end_whole - first_whole, run.value * factor});
  if (const uint64_t tail = end - end_whole * factor; tail > 0) {
    Add({end_whole, 1, run.value * tail});
  }
}

std::vector<DigestRun> DigestRunSum::Take() {
  std::ranges::sort(edges_);
  std::vector<DigestRun> runs;
  uint64_t value = 0;
  for (size_t i = 0; i < edges_.size();) {
    const uint64_t at = edges_[i].first;
    for (; i < edges_.size() && edges_[i].first == at; ++i) value += edges_[i].second;
    if (value == 0 || i == edges_.size()) continue;
    const DigestRun run{at, edges_[i].first - at, value};
    const bool continues =
        !runs.empty() && runs.back().value == value && runs.back().begin + runs.back().count == at;
    if (continues) {
      runs.back().count += run.count;
    } else {
      runs.push_back(run);
    }
  }
  edges_.clear();
  return runs;
}

}  // namespace neurontrace
