// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aggregator/align/core/capture_clocks.h"
#include "neurontrace/v1/operator_service.pb.h"

// The clocks of a capture as messages for operators. Pure.
namespace neurontrace {

// The clock of an instance, without its findings.
v1::InstanceClock ToBriefMessage(const InstanceClock& clock);
// The same with its findings, whose times become reference times.
v1::InstanceClock ToMessage(const InstanceClock& clock);
v1::OrderCheck ToMessage(const OrderCheck& check);
// The clocks of all devices together.
v1::DeviceClocks ToMessage(const DeviceSummary& devices);

}  // namespace neurontrace
