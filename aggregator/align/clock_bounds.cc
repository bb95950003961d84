// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/clock_bounds.h"

#include <algorithm>

#include "aggregator/align/clock_reading.h"

namespace neurontrace {

std::vector<ClockBound> BoundsIn(const ClockMap& map, const ReferenceWindow& window) {
  std::vector<ClockBound> bounds;
  const auto pieces = map.pieces();
  for (size_t i = 0; i < pieces.size(); ++i) {
    // The first holds also before its begin, and the last for ever.
    const uint64_t begin_ns = i == 0 ? 0 : pieces[i].reference_begin_ns;
    const bool is_last = i + 1 == pieces.size();
    const uint64_t end_ns = is_last ? UINT64_MAX : pieces[i + 1].reference_begin_ns;
    if (begin_ns > window.end_ns) break;
    // REALTIME was set ahead there: a stretch of stamps that never were, and of no time.
    const bool is_gap = !pieces[i].error_bound_ns && i > 0 && end_ns == begin_ns;
    if (is_gap) continue;
    // One that ends where the window begins has a neighbour that holds from there on.
    if (!is_last && end_ns <= window.begin_ns) continue;
    bounds.push_back({std::max(begin_ns, window.begin_ns), std::min(end_ns, window.end_ns),
                      pieces[i].error_bound_ns.value_or(kNoBound)});
  }
  return bounds;
}

}  // namespace neurontrace
