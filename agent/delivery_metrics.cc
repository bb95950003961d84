// SPDX-License-Identifier: Apache-2.0
#include "agent/delivery_metrics.h"

#include <utility>
#include <vector>

#include "health/raise_counter.h"
#include "trace/loss_table.h"

namespace neurontrace {
namespace {

// Disks and certificates are looked at in every tenth turn: once in ten seconds.
constexpr uint32_t kTurnsBetweenLooks = 10;

prometheus::Family<prometheus::Gauge>& GaugeFamily(prometheus::Registry& registry,
                                                   const prometheus::Labels& labels,
                                                   const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Labels(labels).Register(registry);
}

// All usual ones up to `last` are there from the start, so that the first is seen as an increase.
void RaiseAll(prometheus::Family<prometheus::Counter>& counters, const LossTable& table,
              LossPlace last) {
  table.ForEach(last, [&counters](LossPlace place, LossReason reason, uint64_t number) {
    RaiseCounter(counters.Add({{"place", std::string(ToString(place))},
                               {"reason", std::string(ToString(reason))}}),
                 static_cast<double>(number));
  });
}

}  // namespace

DeliveryMetrics::DeliveryMetrics(prometheus::Registry& registry, const prometheus::Labels& labels,
                                 const Watched& watched, ChannelSecurity security)
    : watched_(watched),
      losses_(prometheus::BuildCounter()
                  .Name("neurontrace_agent_losses_total")
                  .Help("Events lost, by place and reason, where the number is known")
                  .Labels(labels)
                  .Register(registry)),
      losses_unknown_(prometheus::BuildCounter()
                          .Name("neurontrace_agent_losses_of_unknown_size_total")
                          .Help("Losses whose number is not known, by place and reason")
                          .Labels(labels)
                          .Register(registry)),
      acknowledge_seconds_(prometheus::BuildHistogram()
                               .Name("neurontrace_agent_acknowledge_seconds")
                               .Help("From sending a chunk to the answer that it is durable")
                               .Labels(labels)
                               .Register(registry)
                               .Add({}, prometheus::Histogram::BucketBoundaries(
                                            AckTimes::kSeconds.begin(), AckTimes::kSeconds.end()))),
      disk_free_{GaugeFamily(registry, labels, "neurontrace_agent_spool_disk_free_bytes",
                             "What the spool's disk has left for the agent")},
      certificate_expiry_{GaugeFamily(registry, labels,
                                      "neurontrace_agent_certificate_expiry_seconds",
                                      "Until when the agent's certificate is valid, since 1970")},
      authority_expiry_{GaugeFamily(registry, labels, "neurontrace_agent_authority_expiry_seconds",
                                    "Until when the first of its authorities is valid, since "
                                    "1970")},
      secret_files_open_(prometheus::BuildGauge()
                             .Name("neurontrace_agent_secret_files_open")
                             .Help("Private key and token files that every user of the machine "
                                   "may read")
                             .Register(registry)
                             .Add(labels)),
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
  RaiseAll(losses_, all, LossPlace::kWireRefusal);
  RaiseAll(losses_unknown_, watched_.sources.losses_unknown, LossPlace::kDecode);
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
