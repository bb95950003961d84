// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <string>

#include "neurontrace/v1/operator_service.pb.h"

// Clocks as text for a terminal, for `neurontrace clocks`. Pure functions; times are ns, and a
// bound is the greatest possible error.
namespace neurontrace::cli {

// Returns "+1.204 s", "-31.5 us", "0.3 us".
std::string FormatOffset(int64_t ns);
// Returns "31.2 us (likely 2.1 us)"; "not aligned" if there is no evidence.
std::string FormatBound(const v1::InstanceClock& clock);

// Returns one line for each instance, then the events of each clock, and the worst bound.
std::string FormatClocks(const google::protobuf::RepeatedPtrField<v1::InstanceClock>& clocks);

// Returns a sentence about the version of a capture's clocks, with a newline.
std::string FormatClockVersion(const v1::ListClocksReply& reply);

// Returns how exact the clocks of a capture's devices are, and whether events of several instances
// are shown in a possible order. "" if neither is known.
std::string FormatDevicesAndOrder(const v1::ListClocksReply& reply);

}  // namespace neurontrace::cli
