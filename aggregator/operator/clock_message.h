// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aggregator/align/core/capture_clocks.h"
#include "neurontrace/v1/operator_service.pb.h"

// Converts the clocks of instances and devices for operators. Pure functions.
namespace neurontrace {

// Omits the findings about the clock, which a list does not show.
v1::InstanceClock ToBriefMessage(const InstanceClock& clock);
// Includes the findings, with their times converted to the reference timescale.
v1::InstanceClock ToMessage(const InstanceClock& clock);
// Converts one check of the order of events across instances, with its violations.
v1::OrderCheck ToMessage(const OrderCheck& check);
// Summarises all devices of a capture.
v1::DeviceClocks ToMessage(const DeviceSummary& devices);

}  // namespace neurontrace
