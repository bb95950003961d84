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

// Asks how much of the disk under a directory is free for this process. statfs(2) on a broken
// network volume blocks, so the question is put on the spool's thread and free_bytes() returns the
// latest answer. Used from the agent's sequence; the answer crosses by atomics.
class DiskRoom {
 public:
  // `io` outlives this. A task that runs after this was destroyed does no harm, as it shares
  // answer_.
  DiskRoom(std::string directory, TaskRunner& io) : directory_(std::move(directory)), io_(io) {}

  // Starts a query on `io`, unless one is still running, so that a disk that hangs collects no
  // tasks.
  void Ask();
  // Returns the bytes available to an unprivileged process. Empty before the first answer and after
  // a failed one.
  std::optional<uint64_t> free_bytes() const;

 private:
  struct Answer {
    // A query is on its way; is_known tells whether `bytes` holds an answer.
    std::atomic<bool> is_awaited = false;
    std::atomic<bool> is_known = false;
    std::atomic<uint64_t> bytes = 0;
  };

  const std::string directory_;
  TaskRunner& io_;
  // Shared with the task, which may outlive this.
  const std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
};

// Publishes what tracing costs each worker and what detail is omitted, as gauges labelled by pid. A
// worker whose value is not known has no gauge, as 0 would read as "free". On the agent's sequence.
class WorkerLoadMetrics {
 public:
  // The registry owns the metrics.
  WorkerLoadMetrics(prometheus::Registry& registry, const prometheus::Labels& labels);

  // Replaces all gauges by the given workers'. A worker that is not listed loses its gauges.
  void Publish(const std::map<uint32_t, TapWorker::Load>& loads);

 private:
  // By pid.
  GaugesByLabel<uint32_t> core_ppm_;
  GaugesByLabel<uint32_t> bytes_per_second_;
  GaugesByLabel<uint32_t> fidelity_;
};

// Publishes whether recorded data reaches the aggregator: losses by place and reason, the latency
// of acknowledgements, free space of the spool's disk, and the expiry of the agent's certificates.
// On the agent's sequence. docs/operator/metrics.md describes each metric.
class DeliveryMetrics {
 public:
  // All objects outlive this.
  struct Watched {
    const AgentSourceMetrics& sources;
    const DeliveryQueue& queue;
    const Uploader& uploader;
    DiskRoom* room;  // may be null
  };

  // The registry owns the metrics.
  DeliveryMetrics(prometheus::Registry& registry, const prometheus::Labels& labels,
                  const Watched& watched, ChannelSecurity security);

  // Publishes the metrics. Called once a second on the agent's sequence, on which reading small
  // files may block. Reads files of certificates and the disk only in every tenth call.
  void Publish();

 private:
  // Copy what has changed since the last call.
  void PublishLosses();
  void PublishAckTimes();

  const Watched watched_;
  prometheus::Family<prometheus::Counter>& losses_;
  prometheus::Family<prometheus::Counter>& losses_unknown_;
  prometheus::Histogram& acknowledge_seconds_;
  // The totals at the last call, since a Prometheus histogram takes increments.
  AckTimes published_;
  OptionalGauge disk_free_;
  OptionalGauge certificate_expiry_;
  OptionalGauge authority_expiry_;
  prometheus::Gauge& secret_files_open_;
  const ChannelSecurity security_;
  // Calls of Publish so far.
  uint32_t turn_ = 0;
};

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
