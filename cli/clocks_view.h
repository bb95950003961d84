// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <string>

#include "neurontrace/v1/operator_service.pb.h"

// How clocks read on a terminal. Pure functions.
namespace neurontrace::cli {

// "+1.204 s", "-31.5 us", "0.3 us".
std::string FormatOffset(int64_t ns);
// "31.2 us (likely 2.1 us)"; "not aligned" where there is no evidence.
std::string FormatBound(const v1::InstanceClock& clock);

// One line an instance, then what happened to each clock, and the worst bound.
std::string FormatClocks(const google::protobuf::RepeatedPtrField<v1::InstanceClock>& clocks);

// A sentence on the version of a capture's clocks, with the end of its line.
std::string FormatClockVersion(const v1::ListClocksReply& reply);

// What the clocks of a capture's devices are worth, and whether what instances did together is
// shown in an order that it can have had. Empty where nothing is known of either.
std::string FormatDevicesAndOrder(const v1::ListClocksReply& reply);

}  // namespace neurontrace::cli
