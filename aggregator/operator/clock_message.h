// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aggregator/align/core/capture_clocks.h"
#include "neurontrace/v1/operator_service.pb.h"

// The clocks of instances and devices as operators see them. Pure functions.
namespace neurontrace {

// Leaves out the findings about the clock.
v1::InstanceClock ToBriefMessage(const InstanceClock& clock);
// Converts the times of the findings to reference times.
v1::InstanceClock ToMessage(const InstanceClock& clock);
v1::OrderCheck ToMessage(const OrderCheck& check);
// Returns what is known about all devices together.
v1::DeviceClocks ToMessage(const DeviceSummary& devices);

}  // namespace neurontrace
