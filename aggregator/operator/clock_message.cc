// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/clock_message.h"

#include "aggregator/align/clock_reading.h"

namespace neurontrace {

v1::InstanceClock ToBriefMessage(const InstanceClock& clock) {
  v1::InstanceClock message;
  message.set_instance_id(clock.instance_id);
  message.set_boot_id(clock.boot_id);
  message.set_aligned(!clock.model.segments.empty());
  message.set_exchanges(clock.exchanges);
  for (const std::string& source : clock.sources) message.add_sources(source);
  if (!message.aligned()) return message;
  message.set_offset_ns(clock.offset_ns);
  message.set_drift_ppb(clock.drift_ppb);
  message.set_bound_ns(clock.bound_ns);
  message.set_likely_bound_ns(clock.likely_bound_ns);
  return message;
}

v1::InstanceClock ToMessage(const InstanceClock& clock) {
  v1::InstanceClock message = ToBriefMessage(clock);
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

}  // namespace neurontrace
