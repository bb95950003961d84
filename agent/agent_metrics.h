// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent_clocks.h"
#include "agent/control/control_session.h"
#include "agent/source/neuron/tap_source.h"
#include "agent/source/source_metrics.h"
#include "agent/spool/spool.h"
#include "agent/triggers/agent_triggers.h"
#include "agent/upload/answer_watch.h"
#include "agent/upload/delivery_queue.h"
#include "agent/upload/uploader.h"
#include "agent/worker_load_metrics.h"
#include "base/clock.h"
#include "health/metric_builders.h"

namespace neurontrace {

// What the agent counts, as Prometheus metrics; docs/operations.md has the words. Components count
// in plain numbers on the agent's sequence, and Publish, on that sequence, copies them.
class AgentMetrics {
 public:
  // What is looked at; all of it outlives this.
  struct Watched {
    const AgentSourceMetrics& sources;
    const DeliveryQueue& queue;
    const Uploader& uploader;
    const ControlSession& control;
    const TapSource& taps;
    const Spool* spool;  // may be null
    const Clock& clock;
    const AnswerWatch& answers;
    const AgentClocks& clocks;
    const AgentTriggers& triggers;
  };

  // The registry owns the metrics.
  AgentMetrics(prometheus::Registry& registry, const std::string& instance_id,
               const Watched& watched);

  void Publish();
  const prometheus::Labels& labels() const { return labels_; }  // of all of them

 private:
  using Read = std::function<double()>;
  void AddCounter(const char* name, const char* help, Read read);
  void AddGauge(const char* name, const char* help, Read read);
  void AddSourceCounters();
  void AddHostCounters();
  void AddDeliveryMetrics();
  void AddControlMetrics();
  void AddSpoolMetrics(const Spool& spool);
  void AddClockMetrics();
  void AddTriggerMetrics();
  void PublishCores();
  void PublishHeadroom();
  void PublishCanaries();

  OptionalGauge MakeOptionalGauge(const char* name, const char* help);

  template <typename Metric>
  struct Published {
    Metric* metric;
    Read read;
  };

  prometheus::Registry& registry_;
  const prometheus::Labels labels_;
  const Watched watched_;
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
