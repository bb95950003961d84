// SPDX-License-Identifier: Apache-2.0
#include "agent/delivery_metrics.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "lib/trace/loss.h"
#include "lib/trace/loss_table.h"
#include "lib/wire/security_watch.h"

namespace neurontrace {
namespace {

// Disks and certificates are looked at in every tenth turn: once in ten seconds.
constexpr uint32_t kTurnsBetweenPolls = 10;

}  // namespace

DeliveryMetrics::DeliveryMetrics(prometheus::Registry& registry, const prometheus::Labels& labels,
                                 const Watched& watched, ChannelSecurity security)
    : watched_(watched),
      losses_(MakeCounterFamily(registry, "neurontrace_agent_losses_total",
                                "Events lost, by place and reason, if the number is known",
                                labels)),
      losses_unknown_(
          MakeCounterFamily(registry, "neurontrace_agent_losses_of_unknown_size_total",
                            "Losses of an unknown number of events, by place and reason", labels)),
      acknowledge_seconds_(MakeHistogram(registry, "neurontrace_agent_acknowledge_seconds",
                                         "Seconds from sending a chunk to its acknowledgement",
                                         {AckTimes::kSeconds.begin(), AckTimes::kSeconds.end()},
                                         labels)),
      disk_free_{MakeGaugeFamily(registry, "neurontrace_agent_spool_disk_free_bytes",
                                 "Free bytes of the spool's disk that the agent may use", labels)},
      certificate_expiry_{
          MakeGaugeFamily(registry, "neurontrace_agent_certificate_expiry_seconds",
                          "Expiry time of the agent's certificate, in seconds since 1970", labels)},
      authority_expiry_{MakeGaugeFamily(
          registry, "neurontrace_agent_authority_expiry_seconds",
          "Earliest expiry time of its certificate authorities, in seconds since 1970", labels)},
      secret_files_open_(MakeGauge(
          registry, "neurontrace_agent_secret_files_open",
          "Private key and token files that are readable for every user of the machine", labels)),
      security_(std::move(security)) {
  // At once, so that every place and reason has a counter before the first loss: an alert on an
  // increase would not see the first value of a new series.
  PublishLosses();
}

void DeliveryMetrics::Publish() {
  PublishLosses();
  PublishAckTimes();
  if (turn_++ % kTurnsBetweenPolls == 0) {
    if (watched_.room != nullptr) watched_.room->Ask();
    // Certificates may be replaced while the agent runs, so their files are read again.
    const SecurityEnds ends = EndsOf(security_);
    certificate_expiry_.Set(ends.certificate);
    authority_expiry_.Set(ends.authority);
    secret_files_open_.Set(static_cast<double>(ends.open_secrets));
  }
  if (watched_.room != nullptr) disk_free_.Set(watched_.room->free_bytes());
}

// Losses are counted where they are recorded in a stream: by sources up to decoding, by the queue
// from there on.
void DeliveryMetrics::PublishLosses() {
  LossTable all = watched_.sources.losses_by_place;
  all.Add(watched_.queue.losses());
  RaiseLosses(losses_, all, LossPlace::kWireRefusal);
  RaiseLosses(losses_unknown_, watched_.sources.losses_unknown, LossPlace::kDecode);
}

void DeliveryMetrics::PublishAckTimes() {
  const AckTimes& now = watched_.uploader.ack_times();
  // The histogram takes what is new since the last time; the uploader keeps totals.
  std::vector<double> more;
  more.reserve(now.counts.size());
  for (size_t i = 0; i < now.counts.size(); ++i) {
    more.push_back(static_cast<double>(now.counts[i] - published_.counts[i]));
  }
  acknowledge_seconds_.ObserveMultiple(more, now.sum_seconds - published_.sum_seconds);
  published_ = now;
}

}  // namespace neurontrace
