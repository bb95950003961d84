// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/row_source.h"

#include "lib/trace/event_filter.h"

namespace neurontrace {

std::string_view ToString(RowSource source) {
  switch (source) {
    case RowSource::kRuntime:
      return "neuron_rt";
    case RowSource::kHardware:
      return "neuron_hw";
    case RowSource::kAnnotation:
      return "annotation";
    case RowSource::kFramework:
      break;
  }
  return "framework";
}

RowSource RowSourceOf(std::string_view event_type) {
  if (event_type == "timestamp_sync_point") return RowSource::kRuntime;
  return IsHardwareEventType(event_type) ? RowSource::kHardware : RowSource::kRuntime;
}

std::string_view FrameworkCategory(std::string_view event_type) {
  // All phases of the Trace Event Format. A category of one of these letters is not told apart from
  // an absent one, which is harmless.
  constexpr std::string_view kPhases = "BEXiIRCbneSTpFstfPNODMVvac(),";
  const bool is_phase = event_type.size() == 1 && kPhases.find(event_type[0]) != kPhases.npos;
  return is_phase ? std::string_view() : event_type;
}

}  // namespace neurontrace
