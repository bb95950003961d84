// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "lib/trace/daemon_limits.h"

namespace neurontrace {

// Decides which log lines are written, so that a repeated problem neither fills a disk nor hides
// other lines: see limits::kLogLinesOfKindAtOnce. Two token buckets, one for the line's kind and
// one for all lines. One thread at a time.
class LineLimiter {
 public:
  // What to do with a line.
  struct Verdict {
    bool passes = false;
    uint64_t left_out = 0;  // lines of this kind since the last one that passed
  };
  // Judges a line; `text` is the line without its time. `monotonic_ns` must not decrease.
  Verdict Judge(std::string_view text, uint64_t monotonic_ns);

  // Returns how many lines were suppressed since the start.
  uint64_t left_out() const { return left_out_; }

 private:
  // A token bucket: it holds at most `at_once` tokens and gains `per_second` of them. Take removes
  // one and returns whether there was one.
  struct Bucket {
    bool Take(uint64_t monotonic_ns, uint32_t at_once, uint32_t per_second);

    // Fractions accumulate; a line takes a whole token.
    double tokens = 0;
    // When tokens were added last, by the monotonic clock.
    uint64_t filled_ns = 0;
  };
  // The state of one kind of line, which is a text without its digits.
  struct Kind {
    uint64_t hash = 0;  // 0: free
    Bucket bucket;
    // Lines that were suppressed since the last one that passed.
    uint64_t left_out = 0;
  };

  // A fixed table indexed by hash, so that memory is bounded whatever is logged.
  std::array<Kind, limits::kLogKinds> kinds_;  // by hash
  // The bucket of all lines together.
  Bucket all_;
  bool began_ = false;
  uint64_t left_out_ = 0;
};

}  // namespace neurontrace
