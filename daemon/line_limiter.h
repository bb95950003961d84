// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "trace/daemon_limits.h"

namespace neurontrace {

// Decides which log lines are written, so that what goes wrong again and again neither fills a disk
// nor pushes out what else is said: see limits::kLogLinesOfKindAtOnce. Two token buckets, one of
// the line's kind and one of all lines. One thread at a time.
class LineLimiter {
 public:
  struct Verdict {
    bool passes = false;
    uint64_t left_out = 0;  // lines of this kind since the last one that passed
  };
  // `text` is the line without its time. Time only goes forward.
  Verdict Judge(std::string_view text, uint64_t monotonic_ns);

  // Lines that did not pass, since the start.
  uint64_t left_out() const { return left_out_; }

 private:
  struct Bucket {
    bool Take(uint64_t monotonic_ns, uint32_t at_once, uint32_t per_second);

    double tokens = 0;
    uint64_t filled_ns = 0;
  };
  struct Kind {
    uint64_t hash = 0;  // 0: nobody's
    Bucket bucket;
    uint64_t left_out = 0;
  };

  std::array<Kind, limits::kLogKinds> kinds_;  // by hash
  Bucket all_;
  bool began_ = false;
  uint64_t left_out_ = 0;
};

}  // namespace neurontrace
