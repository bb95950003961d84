// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/waiting_spans.h"

#include <fmt/format.h>

namespace neurontrace {

void StopsMissed::Warn(const WaitingLimits& limits, ExportSummary& summary) const {
  // The texts name the limits, so that a reader can tell a narrow selection from a damaged capture.
  if (without_room > 0) {
    summary.warnings.push_back(fmt::format(
        "{} spans are shown without the attributes of their stops, because more than {} spans or "
        "{} MiB waited for theirs at once",
        without_room, limits.spans, limits.bytes >> 20));
  }
  // Two warnings, because only the first could be avoided by a narrower selection.
  if (not_come > 0) {
    summary.warnings.push_back(fmt::format(
        "{} spans are shown without the attributes of their stops, which are missing", not_come));
  }
}

}  // namespace neurontrace
