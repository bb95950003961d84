// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// One value of a counter. The names of the counter and of the value's key make that of its row.
struct CounterValue {
  std::string counter;
  std::string key;
  double value = 0;
};

// Returns the values of a counter's record: of a framework's file or, if `is_host`, of a host's
// samples, which name the processor that they are about. Pure.
std::vector<CounterValue> CounterValuesOf(const TimelineRecord& record, bool is_host);

}  // namespace neurontrace
