// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aggregator/align/capture_clocks.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// As an operator sees the clocks of an instance. The times of findings become reference times.
v1::InstanceClock ToMessage(const InstanceClock& clock);
// Without what happened to it.
v1::InstanceClock ToBriefMessage(const InstanceClock& clock);
v1::OrderCheck ToMessage(const OrderCheck& check);
// What is known of all devices together.
v1::DeviceClocks ToMessage(const DeviceSummary& devices);

}  // namespace neurontrace
