// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aggregator/align/clock_lines.h"

namespace neurontrace {

// UnionOf the first two lists, of that and the third, and so on. Where lists overlap so much that
// this would take the square of their number, what is left is united by halves first: bounds hold
// for all as well, and only rounding is another.
std::vector<ClockLine> UnionOfAll(std::vector<std::vector<ClockLine>> lists);

}  // namespace neurontrace
