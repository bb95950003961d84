// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/clock_book_metrics.h"

namespace neurontrace {
namespace {

prometheus::Counter& MakeCounter(prometheus::Registry& registry, const char* name,
                                 const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

}  // namespace

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
