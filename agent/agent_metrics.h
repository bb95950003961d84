// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/labels.h>
#include <prometheus/registry.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent_clocks.h"
#include "agent/control/control_session.h"
#include "agent/source/neuron/tap_source.h"
#include "agent/source/neuron/tap_worker.h"
#include "agent/source/source_metrics.h"
#include "agent/spool/spool.h"
#include "agent/triggers/agent_triggers.h"
#include "agent/upload/ack_times.h"
#include "agent/upload/ack_watchdog.h"
#include "agent/upload/delivery_queue.h"
#include "agent/upload/uploader.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"
#include "lib/health/metric_builders.h"
#include "lib/wire/security_watch.h"

namespace neurontrace {

// What the disk under a directory has left for this process. Asks on a thread that may wait for the
// disk; whoever wants to know gets what it last said. One thread but for that.
class DiskRoom {
 public:
  // `io` outlives this or is at its end; tasks that are left there do no harm.
  DiskRoom(std::string directory, TaskRunner& io) : directory_(std::move(directory)), io_(io) {}

  // Has the disk asked, unless it has yet to answer the last time.
  void Ask();
  // Bytes; nothing before the first answer, and while the disk gives none.
  std::optional<uint64_t> free_bytes() const;

 private:
  struct Answer {
    std::atomic<bool> is_awaited = false;
    std::atomic<bool> is_known = false;
    std::atomic<uint64_t> bytes = 0;
  };

  const std::string directory_;
  TaskRunner& io_;
  const std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
};

// What each worker costs and what is left out of it, as Prometheus gauges by pid; one that is not
// known is not there. On the agent's sequence.
class WorkerLoadMetrics {
 public:
  // The registry owns the metrics.
  WorkerLoadMetrics(prometheus::Registry& registry, const prometheus::Labels& labels);

  void Publish(const std::map<uint32_t, TapWorker::Load>& loads);

 private:
  GaugesByLabel<uint32_t> core_ppm_;
  GaugesByLabel<uint32_t> bytes_per_second_;
  GaugesByLabel<uint32_t> fidelity_;
};

// Whether what is recorded gets through, as Prometheus metrics: what is lost where and why, how
// long acknowledgements take, what room the spool's disk has, and until when the agent's
// certificate is good. On the agent's sequence.
class DeliveryMetrics {
 public:
  // All of it outlives this.
  struct Watched {
    const AgentSourceMetrics& sources;
    const DeliveryQueue& queue;
    const Uploader& uploader;
    DiskRoom* room;  // may be null
  };

  // The registry owns the metrics.
  DeliveryMetrics(prometheus::Registry& registry, const prometheus::Labels& labels,
                  const Watched& watched, ChannelSecurity security);

  void Publish();

 private:
  void PublishLosses();
  void PublishAckTimes();

  const Watched watched_;
  prometheus::Family<prometheus::Counter>& losses_;
  prometheus::Family<prometheus::Counter>& losses_unknown_;
  prometheus::Histogram& acknowledge_seconds_;
  AckTimes published_;
  OptionalGauge disk_free_;
  OptionalGauge certificate_expiry_;
  OptionalGauge authority_expiry_;
  prometheus::Gauge& secret_files_open_;
  const ChannelSecurity security_;
  uint32_t turn_ = 0;
};

// What the agent counts, as Prometheus metrics; docs/operator/metrics.md describes them.
// Components count in plain numbers on the agent's sequence, and Publish, on that sequence, copies
// them.
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
    const AckWatchdog& answers;
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
