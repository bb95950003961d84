// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/clock_book_metrics.h"

#include "health/metric_builders.h"

namespace neurontrace {
ClockBookMetrics::ClockBookMetrics(prometheus::Registry& registry)
    : fits(MakeCounter(registry, "neurontrace_aggregator_clock_fits_total",
                       "Times that the clocks of a capture were fitted")),
      fit_seconds(MakeCounter(registry, "neurontrace_aggregator_clock_fit_seconds_total",
                              "How long that took")),
      versions_stored(MakeCounter(registry, "neurontrace_aggregator_clock_versions_stored_total",
                                  "Versions of captures' clock models stored")),
      versions_not_stored(
          MakeCounter(registry, "neurontrace_aggregator_clock_versions_not_stored_total",
                      "Versions that the store refused, or whose predecessor it could not read")) {}

}  // namespace neurontrace
