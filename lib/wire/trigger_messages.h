// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "lib/trace/trigger_rule.h"
#include "neurontrace/v1/trigger.pb.h"

namespace neurontrace {

// Convert the rules of triggers, as lib/wire/conversions.h does for other messages. FromProto
// checks lengths and enums; lib/triggers/trigger_rule_check.h checks what a rule means. Pure
// functions, any thread.
void ToProto(const TriggerRule& value, v1::TriggerRule* message);
void ToProto(const TriggerFired& value, v1::TriggerFired* message);

absl::StatusOr<TriggerRule> FromProto(const v1::TriggerRule& message);
absl::StatusOr<TriggerFired> FromProto(const v1::TriggerFired& message);

}  // namespace neurontrace
