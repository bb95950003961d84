// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/labels.h>
#include <prometheus/registry.h>

#include <cstdint>

#include "agent/disk_room.h"
#include "agent/source/source_metrics.h"
#include "agent/upload/ack_times.h"
#include "agent/upload/delivery_queue.h"
#include "agent/upload/uploader.h"
#include "lib/health/metric_builders.h"
#include "lib/wire/channel_security.h"

namespace neurontrace {

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

}  // namespace neurontrace
