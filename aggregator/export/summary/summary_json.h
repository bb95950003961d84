// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "aggregator/derive/summary.h"

namespace neurontrace {

// A capture's figures as one JSON object for programs; docs/formats/summary.md has its keys.
std::string SummaryJson(const CaptureSummary& summary);

}  // namespace neurontrace
