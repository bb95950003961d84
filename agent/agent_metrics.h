// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/labels.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/agent_clocks.h"
#include "agent/control/control_session.h"
#include "agent/source/neuron/tap_source.h"
#include "agent/source/source_metrics.h"
#include "agent/spool/spool.h"
#include "agent/triggers/agent_triggers.h"
#include "agent/upload/ack_watchdog.h"
#include "agent/upload/delivery_queue.h"
#include "agent/upload/uploader.h"
#include "agent/worker_load_metrics.h"
#include "lib/base/clock.h"
#include "lib/health/metric_builders.h"

namespace neurontrace {

// Publishes what the agent counts as Prometheus metrics; docs/operator/metrics.md describes them.
// Components count in plain numbers on the agent's sequence, and Publish, called there once a
// second, copies them into the registry, so that a scrape on the HTTP thread never touches a
// component.
class AgentMetrics {
 public:
  // The objects that are read; all of them outlive this.
  struct Watched {
    const AgentSourceMetrics& sources;
    const DeliveryQueue& queue;
    const Uploader& uploader;
    const ControlSession& control;
    const TapSource& taps;
    const Spool* spool;  // may be null
    const Clock& clock;
    const AckWatchdog& answers;
    const AgentClocks& clocks;
    const AgentTriggers& triggers;
  };

  // Registers all metrics, so that each exists with the value 0 from the first scrape on. The
  // registry owns them; every one has the label `instance_id`. Used on the agent's sequence; the
  // registry itself may be scraped by other threads.
  AgentMetrics(prometheus::Registry& registry, const std::string& instance_id,
               const Watched& watched);

  // Copies all values; to be called once a second.
  void Publish();
  const prometheus::Labels& labels() const { return labels_; }  // of all of them

 private:
  // Reads one value of a component; called in Publish. It must not block.
  using Read = std::function<double()>;
  // Adds a counter, whose function returns a total that never falls; Publish adds the increase.
  void AddCounter(const char* name, const char* help, Read read);
  void AddGauge(const char* name, const char* help, Read read);
  // Register the metrics of one area each.
  void AddSourceCounters();
  void AddHostCounters();
  void AddDeliveryMetrics();
  void AddControlMetrics();
  void AddSpoolMetrics(const Spool& spool);
  void AddClockMetrics();
  void AddTriggerMetrics();
  // Publish metrics whose labels are only known while the agent runs.
  void PublishCores();
  void PublishHeadroom();
  void PublishCanaries();

  // Makes a gauge that exists only while its value is known.
  OptionalGauge MakeOptionalGauge(const char* name, const char* help);

  // A metric of the registry with the function that reads its value.
  template <typename Metric>
  struct Published {
    Metric* metric;
    Read read;
  };

  // Outlives this; Agent owns it.
  prometheus::Registry& registry_;
  const prometheus::Labels labels_;
  const Watched watched_;
  // The readers of clock metrics refer to it.
  AgentClocks::Stats clock_stats_;  // as of the last Publish
  std::vector<Published<prometheus::Counter>> counters_;
  std::vector<Published<prometheus::Gauge>> gauges_;
  prometheus::Family<prometheus::Counter>& core_events_;
  prometheus::Family<prometheus::Counter>& core_events_lost_;
  GaugesByLabel<uint32_t> ring_seconds_;
  WorkerLoadMetrics worker_loads_;
  OptionalGauge buffer_seconds_;
  OptionalGauge canary_age_seconds_;
  OptionalGauge canary_round_trip_seconds_;
  OptionalGauge answer_wait_seconds_;
};

}  // namespace neurontrace
