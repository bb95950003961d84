// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aggregator/align/clock_map.h"
#include "aggregator/align/device_clock.h"

namespace neurontrace {

// A part for each segment of the model, which is what events go through: at a few nanoseconds
// each, and without a word where the model leaves open to which of two segments they belong.
DeviceMap DeviceMapOf(const DeviceClockModel& model);

}  // namespace neurontrace
