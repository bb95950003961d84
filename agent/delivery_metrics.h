// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/labels.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <optional>
#include <string>

#include "agent/disk_room.h"
#include "agent/source/source_metrics.h"
#include "agent/upload/ack_times.h"
#include "agent/upload/delivery_queue.h"
#include "agent/upload/uploader.h"
#include "health/metric_builders.h"
#include "wire/security_watch.h"

namespace neurontrace {

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

}  // namespace neurontrace
