// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/order_row.h"

#include "base/status.h"
#include "trace/clock_limits.h"

namespace neurontrace {

void WriteOrderCheck(const OrderCheck& check, StoredBytesWriter& out) {
  out.String(check.job);
  out.Int(check.world_size);
  out.String(check.event_type);
  for (const uint64_t count :
       {check.events, check.left_out, check.instances, check.violated, check.beyond_bounds}) {
    out.Uint(count);
  }
  out.Int(check.worst_ns);
  out.Bool(check.is_conclusive);
  out.String(check.words);
  out.Uint(check.violations.size());
  for (const OrderViolation& violation : check.violations) {
    out.Uint(violation.reference_ns);
    out.Int(violation.amount_ns);
    out.Uint(violation.bound_ns);
    out.Uint(violation.exec_id);
    out.Uint(violation.operation);
    out.String(violation.entered_by);
    out.String(violation.left_by);
  }
}

absl::StatusOr<OrderCheck> ReadOrderCheck(StoredBytesReader& in) {
  OrderCheck check;
  check.job = in.String();
  check.world_size = in.Int();
  check.event_type = in.String();
  for (uint64_t* count :
       {&check.events, &check.left_out, &check.instances, &check.violated, &check.beyond_bounds}) {
    *count = in.Uint();
  }
  check.worst_ns = in.Int();
  check.is_conclusive = in.Bool();
  check.words = in.String();
  for (size_t left = in.Count(); left > 0 && in.ok(); --left) {
    OrderViolation& violation = check.violations.emplace_back();
    violation.reference_ns = in.Uint();
    violation.amount_ns = in.Int();
    violation.bound_ns = in.Uint();
    violation.exec_id = in.Uint();
    violation.operation = in.Uint();
    violation.entered_by = in.String();
    violation.left_by = in.String();
  }
  if (!in.Finished()) return InvalidArgument("it does not fit");
  if (check.violations.size() > limits::kOrderViolationsShownMax) {
    return InvalidArgument("{} violations are more than are kept", check.violations.size());
  }
  return check;
}

}  // namespace neurontrace
