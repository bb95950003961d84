// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/clock_message.h"

#include <string>

#include "aggregator/align/core/clock_reading.h"

namespace neurontrace {

v1::InstanceClock ToBriefMessage(const InstanceClock& clock) {
  v1::InstanceClock message;
  message.set_instance_id(clock.instance_id);
  message.set_boot_id(clock.boot_id);
  // A model without a segment, or without a bound, says nothing about the instance's time.
  message.set_aligned(!clock.model.segments.empty() && clock.bound_ns != kNoBound);
  message.set_exchanges(clock.exchanges);
  for (const std::string& source : clock.sources) message.add_sources(source);
  // Without alignment the numbers have no meaning.
  if (!message.aligned()) return message;
  message.set_offset_ns(clock.offset_ns);
  message.set_drift_ppb(clock.drift_ppb);
  message.set_bound_ns(clock.bound_ns);
  message.set_likely_bound_ns(clock.likely_bound_ns);
  return message;
}

v1::InstanceClock ToMessage(const InstanceClock& clock) {
  v1::InstanceClock message = ToBriefMessage(clock);
  // Findings have times of the instance's own clock; people need times that they can compare.
  const auto reference_ns = [&](uint64_t x_ns) {
    return EvaluateClock(clock.model, x_ns).estimate.y_ns;
  };
  for (const ClockFinding& finding : clock.model.findings) {
    v1::ClockFinding& told = *message.add_findings();
    told.set_kind(static_cast<v1::ClockFindingKind>(finding.kind));
    told.set_begin_ns(reference_ns(finding.x_begin_ns));
    told.set_end_ns(reference_ns(finding.x_end_ns));
    told.set_amount_ns(finding.amount_ns);
    told.set_words(finding.words);
  }
  return message;
}

// Lists the violations that the check has kept; `violated` counts all.
v1::OrderCheck ToMessage(const OrderCheck& check) {
  v1::OrderCheck message;
  message.set_job(check.job);
  message.set_world_size(check.world_size);
  message.set_event_type(check.event_type);
  message.set_events(check.events);
  message.set_left_out(check.left_out);
  message.set_instances(check.instances);
  message.set_violated(check.violated);
  message.set_beyond_bounds(check.beyond_bounds);
  message.set_worst_ns(check.worst_ns);
  message.set_is_conclusive(check.is_conclusive);
  message.set_words(check.words);
  for (const OrderViolation& violation : check.violations) {
    v1::OrderViolation& told = *message.add_violations();
    told.set_reference_ns(violation.reference_ns);
    told.set_amount_ns(violation.amount_ns);
    told.set_bound_ns(violation.bound_ns);
    told.set_exec_id(violation.exec_id);
    told.set_operation(violation.operation);
    told.set_entered_by(violation.entered_by);
    told.set_left_by(violation.left_by);
  }
  return message;
}

v1::DeviceClocks ToMessage(const DeviceSummary& devices) {
  v1::DeviceClocks message;
  message.set_known(devices.known);
  message.set_unknown(devices.unknown);
  message.set_bound_ns(devices.bound_ns);
  message.set_likely_bound_ns(devices.likely_bound_ns);
  message.set_executions(devices.executions);
  message.set_sync_points(devices.sync_points);
  message.set_restarts(devices.restarts);
  return message;
}

}  // namespace neurontrace
