// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "aggregator/derive/summary.h"
#include "aggregator/export/exporter.h"

namespace neurontrace {

// A capture's figures as an engineer reads them in a terminal: at most 100 columns, what matters
// first, the verdict last. docs/formats/summary.md explains every column. `warnings` are those of
// the reading.
std::string SummaryText(const CaptureSummary& summary, const TimelineHeader& header,
                        const std::vector<std::string>& warnings);

}  // namespace neurontrace
