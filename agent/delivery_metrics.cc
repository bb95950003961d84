// SPDX-License-Identifier: Apache-2.0
#include "agent/delivery_metrics.h"

#include <utility>
#include <vector>

#include "trace/loss_table.h"

namespace neurontrace {
namespace {

// Disks and certificates are looked at in every tenth turn: once in ten seconds.
constexpr uint32_t kTurnsBetweenLooks = 10;

}  // namespace

DeliveryMetrics::DeliveryMetrics(prometheus::Registry& registry, const prometheus::Labels& labels,
                                 const Watched& watched, ChannelSecurity security)
    : watched_(watched),
      losses_(MakeCounterFamily(registry, "neurontrace_agent_losses_total",
                                "Events lost, by place and reason, where the number is known",
                                labels)),
      losses_unknown_(MakeCounterFamily(registry, "neurontrace_agent_losses_of_unknown_size_total",
                                        "Losses whose number is not known, by place and reason",
                                        labels)),
      acknowledge_seconds_(MakeHistogram(registry, "neurontrace_agent_acknowledge_seconds",
                                         "From sending a chunk to the answer that it is durable",
                                         {AckTimes::kSeconds.begin(), AckTimes::kSeconds.end()},
                                         labels)),
      disk_free_{MakeGaugeFamily(registry, "neurontrace_agent_spool_disk_free_bytes",
                                 "What the spool's disk has left for the agent", labels)},
      certificate_expiry_{MakeGaugeFamily(registry, "neurontrace_agent_certificate_expiry_seconds",
                                          "Until when the agent's certificate is valid, since 1970",
                                          labels)},
      authority_expiry_{MakeGaugeFamily(registry, "neurontrace_agent_authority_expiry_seconds",
                                        "Until when the first of its authorities is valid, since "
                                        "1970",
                                        labels)},
      secret_files_open_(MakeGauge(registry, "neurontrace_agent_secret_files_open",
                                   "Private key and token files that every user of the machine "
                                   "may read",
                                   labels)),
      security_(std::move(security)) {
  PublishLosses();
}

void DeliveryMetrics::Publish() {
  PublishLosses();
  PublishAckTimes();
  if (turn_++ % kTurnsBetweenLooks == 0) {
    if (watched_.room != nullptr) watched_.room->Ask();
    const SecurityEnds ends = EndsOf(security_);
    certificate_expiry_.Set(ends.certificate);
    authority_expiry_.Set(ends.authority);
    secret_files_open_.Set(static_cast<double>(ends.open_secrets));
  }
  if (watched_.room != nullptr) disk_free_.Set(watched_.room->free_bytes());
}

void DeliveryMetrics::PublishLosses() {
  LossTable all = watched_.sources.losses_by_place;
  all.Add(watched_.queue.losses());
  RaiseLosses(losses_, all, LossPlace::kWireRefusal);
  RaiseLosses(losses_unknown_, watched_.sources.losses_unknown, LossPlace::kDecode);
}

void DeliveryMetrics::PublishAckTimes() {
  const AckTimes& now = watched_.uploader.ack_times();
  std::vector<double> more;
  more.reserve(now.counts.size());
  for (size_t i = 0; i < now.counts.size(); ++i) {
    more.push_back(static_cast<double>(now.counts[i] - published_.counts[i]));
  }
  acknowledge_seconds_.ObserveMultiple(more, now.sum_seconds - published_.sum_seconds);
  published_ = now;
}

}  // namespace neurontrace
