// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "aggregator/view/digest_run_sum.h"
#include "aggregator/view/digest_sums.h"

namespace neurontrace {

// Makes the sums of one group of chunks from its events, in the order of their starts. Used by one
// thread at a time.
class DigestSummer {
 public:
  struct Event {
    uint64_t start_ns = 0;  // raw
    uint64_t end_ns = 0;    // UINT64_MAX: it is open
    uint32_t row = 0;
    uint32_t name = 0;
    bool is_span = false;
    // Whether start and stop are known and make sense.
    bool has_length = false;
    // Counts as covered time, as spans that are open do.
    bool is_cover = false;
    bool is_hardware = false;
    bool is_wait = false;
  };
  // `covered_ns` is how far earlier digests cover.
  DigestSummer(uint64_t bin_ns, const DigestCoverTimes& covered_ns)
      : bin_ns_(bin_ns), covered_ns_(covered_ns) {}
  // A span of an earlier digest that is still open. Called before Add, in the order of the starts.
  void Inherit(uint32_t row, uint32_t name, uint64_t stop_ns);
  void Add(const Event& event);

  const DigestCoverTimes& covered_ns() const { return covered_ns_; }
  // Returns the sums; `names` are those that the numbers of events mean.
  DigestSums Take(const std::vector<DigestName>& names);

 private:
  struct OpenSpan {
    uint64_t end_ns = 0;
    uint32_t name = 0;
  };
  void Cover(DigestMeasure measure, uint64_t begin_ns, uint64_t end_ns);
  DigestNameSums& NameAt(uint32_t name);
  void CountSelf(const Event& event);

  const uint64_t bin_ns_;
  DigestCoverTimes covered_ns_;
  std::array<DigestRunSum, kDigestMeasures> bins_;
  std::vector<DigestNameSums> names_;        // by number
  std::vector<DigestRunSum> begun_;          // by number
  std::vector<std::vector<OpenSpan>> open_;  // by row, the innermost last
};

}  // namespace neurontrace
