// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "lib/base/time_units.h"

namespace neurontrace {

// Every k-th of the equal stretches of a window, for questions that have to see all ranks at one
// time and cannot read the whole. A plain value; times are reference nanoseconds.
struct TimeSample {
  uint64_t from_ns = 0;
  uint64_t stretch_ns = UINT64_MAX;
  uint64_t every = 1;  // 1: all of the window

  // Returns a sample of a window that reads about `chunks_max` of its `chunks`, which are of
  // `streams` streams. Stretches are as many as possible, but not shorter than two chunks: of
  // shorter ones most of what is read would be outside.
  static TimeSample Of(uint64_t from_ns, uint64_t to_ns, uint64_t streams, uint64_t chunks,
                       uint64_t chunks_max) {
    constexpr uint64_t kStretches = 32;
    const uint64_t length_ns = to_ns - from_ns;
    const double chunk_ns = static_cast<double>(length_ns) * static_cast<double>(streams) /
                            static_cast<double>(std::max<uint64_t>(chunks, 1));
    TimeSample sample{.from_ns = from_ns};
    // A stretch of two chunks touches three.
    sample.every =
        std::max<uint64_t>((chunks + chunks / 2) / std::max<uint64_t>(chunks_max, 1), 1) + 1;
    sample.stretch_ns = std::clamp<uint64_t>(
        std::max(length_ns / (kStretches * sample.every), static_cast<uint64_t>(2 * chunk_ns)), 1,
        length_ns);
    return sample;
  }

  bool is_all() const { return every == 1; }
  // Returns whether any moment of [begin_ns, end_ns] is in the sample.
  bool Overlaps(uint64_t begin_ns, uint64_t end_ns) const {
    if (is_all()) return true;
    if (end_ns < from_ns) return false;
    const uint64_t first = StretchOf(begin_ns);
    const uint64_t sampled = (first + every - 1) / every * every;
    return sampled <= StretchOf(end_ns);
  }
  // Returns whether one stretch of the sample has all of [begin_ns, end_ns].
  bool HasWhole(uint64_t begin_ns, uint64_t end_ns) const {
    if (is_all()) return true;
    return begin_ns >= from_ns && StretchOf(begin_ns) % every == 0 &&
           StretchOf(begin_ns) == StretchOf(end_ns);
  }
  // Says what was read, for an answer.
  std::string Describe() const {
    return fmt::format(
        "a sample: one of every {} stretches of {} was read, because the window has too many "
        "chunks",
        every, FormatSeconds(stretch_ns));
  }

 private:
  uint64_t StretchOf(uint64_t at_ns) const {
    return SubtractSaturating(at_ns, from_ns) / stretch_ns;
  }
};

}  // namespace neurontrace
