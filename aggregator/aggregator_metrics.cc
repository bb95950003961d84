// SPDX-License-Identifier: Apache-2.0
#include "aggregator/aggregator_metrics.h"

namespace neurontrace {
namespace {

prometheus::Gauge& Gauge(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
}

prometheus::Counter& Counter(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

}  // namespace

AggregatorMetrics::AggregatorMetrics(prometheus::Registry& registry)
    : agents_connected(
          Gauge(registry, "neurontrace_aggregator_agents_connected", "Agents connected")),
      workers(Gauge(registry, "neurontrace_aggregator_workers", "Workers of connected agents")),
      captures_running(Gauge(registry, "neurontrace_aggregator_captures_running",
                             "Captures recording or stopping")),
      captures_stored(
          Gauge(registry, "neurontrace_aggregator_captures_stored", "Captures in the store")),
      store_bytes(Gauge(registry, "neurontrace_aggregator_store_bytes", "Bytes of the store")),
      chunks_damaged(Gauge(registry, "neurontrace_aggregator_store_chunks_damaged",
                           "Chunks found damaged on disk since the start, now losses")),
      streams_live(Gauge(registry, "neurontrace_aggregator_streams_live",
                         "Streams of captures that go on, begun and not ended")),
      exports(Counter(registry, "neurontrace_aggregator_exports_total", "Exports begun")),
      exports_failed(Counter(registry, "neurontrace_aggregator_exports_failed_total",
                             "Exports that ended with an error")),
      canary_age_(prometheus::BuildGauge()
                      .Name("neurontrace_aggregator_canary_age_seconds")
                      .Help("Since the last stored canary was sent, of the live stream that is "
                            "worst off")
                      .Register(registry)) {}

void AggregatorMetrics::SetCanaryAge(std::optional<uint64_t> age_ns) {
  if (age_ns) {
    if (canary_age_gauge_ == nullptr) canary_age_gauge_ = &canary_age_.Add({});
    canary_age_gauge_->Set(static_cast<double>(*age_ns) * 1e-9);
  } else if (canary_age_gauge_ != nullptr) {
    canary_age_.Remove(canary_age_gauge_);
    canary_age_gauge_ = nullptr;
  }
}

}  // namespace neurontrace
