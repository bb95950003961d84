// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/trigger_messages.h"

#include <cmath>
#include <string>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"
#include "lib/wire/conversions.h"
#include "lib/wire/field_checks.h"

namespace neurontrace {
namespace {

// Cleans a name that peers compare and cuts it at its limit.
std::string Identity(const std::string& text) {
  return CleanText(text, limits::kIdentityStringBytesMax);
}

}  // namespace

void ToProto(const TriggerRule& value, v1::TriggerRule* message) {
  message->set_name(Identity(value.name));
  message->set_kind(static_cast<v1::TriggerKind>(value.kind));
  message->set_job(Identity(value.job));
  message->set_times_median(value.times_median);
  message->set_silent_ns(value.silent_ns);
  message->set_cool_down_ns(value.cool_down_ns);
  message->set_per_hour_max(value.per_hour_max);
  message->set_verdicts(Identity(value.verdicts));
  message->set_peers(value.peers);
  message->set_stacks(value.stacks);
  message->set_last_ns(value.last_ns);
  message->set_duration_ns(value.duration_ns);
}

absl::StatusOr<TriggerRule> FromProto(const v1::TriggerRule& message) {
  RETURN_IF_ERROR(CheckIdentityText("trigger.name", message.name()));
  if (message.name().empty()) return InvalidArgument("trigger.name is empty");
  RETURN_IF_ERROR(CheckEnum("trigger.kind", message.kind(), v1::TRIGGER_KIND_SLOW_EXECUTION,
                            v1::TRIGGER_KIND_VERDICT));
  RETURN_IF_ERROR(CheckIdentityText("trigger.job", message.job()));
  RETURN_IF_ERROR(CheckIdentityText("trigger.verdicts", message.verdicts()));
  // Comparisons with NaN are false, so the range check of rules would accept it.
  if (!std::isfinite(message.times_median()) || message.times_median() < 0) {
    return InvalidArgument("trigger.times_median is {}", message.times_median());
  }
  TriggerRule value;
  value.name = message.name();
  value.kind = static_cast<TriggerKind>(message.kind());
  value.job = message.job();
  value.times_median = message.times_median();
  value.silent_ns = message.silent_ns();
  value.cool_down_ns = message.cool_down_ns();
  value.per_hour_max = message.per_hour_max();
  value.verdicts = message.verdicts();
  value.peers = message.peers();
  value.stacks = message.stacks();
  value.last_ns = message.last_ns();
  value.duration_ns = message.duration_ns();
  return value;
}

void ToProto(const TriggerFired& value, v1::TriggerFired* message) {
  message->set_rule(Identity(value.rule));
  message->set_cause(CleanText(value.cause, limits::kDetailBytesMax));
  message->set_job(Identity(value.job));
  ToProto(value.worker, message->mutable_worker());
  message->set_host_realtime_ns(value.host_realtime_ns);
}

// Whether the rule exists is for the receiver to find out: it may have been removed meanwhile.
absl::StatusOr<TriggerFired> FromProto(const v1::TriggerFired& message) {
  RETURN_IF_ERROR(CheckIdentityText("trigger_fired.rule", message.rule()));
  RETURN_IF_ERROR(CheckIdentityText("trigger_fired.job", message.job()));
  TriggerFired value;
  value.rule = message.rule();
  ASSIGN_OR_RETURN(value.cause, CheckDetail("trigger_fired.cause", message.cause()));
  value.job = message.job();
  ASSIGN_OR_RETURN(value.worker, FromProto(message.worker()));
  value.host_realtime_ns = message.host_realtime_ns();
  return value;
}

}  // namespace neurontrace
