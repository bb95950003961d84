// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace::cli {

// "an execution over 3 x the median", "no event for 30.0 s": when a rule fires.
std::string FormatCondition(const v1::TriggerRule& rule);

// The rules alone: when each fires, and what it records.
std::string FormatRules(const v1::ListTriggersReply& reply);

// The rules and what came of them, and what is wrong with their file. Pure.
std::string FormatTriggers(const v1::ListTriggersReply& reply);

}  // namespace neurontrace::cli
