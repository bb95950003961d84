// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aggregator/timeline/chunk_source.h"
#include "trace/loss.h"

namespace neurontrace {

// The losses of a stream as they are shown: those that are known one by one, each at its time, then
// what the sums have beyond them. Every event lost stands in exactly one. Pure.
std::vector<Loss> LossInstants(const StreamDescription& stream);

}  // namespace neurontrace
