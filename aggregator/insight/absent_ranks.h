// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "aggregator/insight/insight_engine.h"
#include "aggregator/insight/insight_report.h"

namespace neurontrace {

// Returns a refusal for each job with ranks without any events: the size of its world is
// known and some are not among `cores`, or they are `silent`, known to the capture but without an
// event. The refusal has no cores: the others are judged by the rule, but whether they wait for an
// absent rank is unknown. The rule itself refuses a job only if less than 90 % of it is present.
// Pure; never fails.
std::vector<Refusal> FindAbsentRanks(std::span<const InsightCore> cores,
                                     std::span<const InsightCore> silent);

}  // namespace neurontrace
