// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "aggregator/derive/shape_fields.h"
#include "aggregator/insight/insight_event.h"

namespace neurontrace {

// Pure functions that the feeds of stored and of running captures share.

// Returns the class of a type of events; nullopt if the rule does not read it. Copies between host
// and device (dmem_buf_*) are parts of tensor reads and writes, which have their time already.
std::optional<InsightClass> InsightClassOf(DerivedType type);

// Returns whether each physical core of a logical one has such an event of its own.
bool HasPhysicalParts(InsightClass kind);

// The order in which an engine takes the events of one core. Of two that end at once the enclosed
// one comes first: a collective belongs to the run that it ends with.
bool EndsBefore(const InsightEvent& a, const InsightEvent& b);

}  // namespace neurontrace
