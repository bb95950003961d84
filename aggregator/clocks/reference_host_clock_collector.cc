// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/reference_host_clock_collector.h"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "aggregator/store/clock_evidence_store.h"
#include "lib/trace/clock_evidence_codec.h"

namespace neurontrace {

ReferenceHostClockCollector::ReferenceHostClockCollector(const Deps& deps, std::string raw_origin)
    : deps_(deps), raw_origin_(std::move(raw_origin)) {
  // The collector must be made on its loop's sequence, where its timers and callbacks run.
  loop_.PostTask([this] { Start(); });
  thread_ = std::thread([this] { loop_.Run(); });
}

// Destroys the collector on its own sequence, then ends the thread.
ReferenceHostClockCollector::~ReferenceHostClockCollector() {
  loop_.PostTask([this] {
    collector_.reset();
    loop_.Quit();
  });
  thread_.join();
}

// A failure is not fatal: without own evidence only the relation to UTC is missing.
void ReferenceHostClockCollector::Start() {
  ClockCollector::Listener& listener = *this;  // a private base, which make_unique cannot reach
  collector_ = std::make_unique<ClockCollector>(
      ClockCollector::Deps{loop_, host_clocks_, files_, random_}, ClockPaths{}, listener);
  if (const absl::Status status = collector_->Start(); !status.ok()) {
    SPDLOG_WARN("cannot measure the reference's own clocks: {}", status.ToString());
  }
}

// Never waits: a full queue drops the batch, counts it and logs it once.
void ReferenceHostClockCollector::OnBatch(ClockEvidence batch) {
  if (*waiting_ >= kBatchesWaitingMax) {
    deps_.metrics.own_batches_dropped.Increment();
    if (!std::exchange(has_dropped_, true)) {
      SPDLOG_WARN(
          "evidence of the reference's own clocks is dropped because the store accepts no writes");
    }
    return;
  }
  // States which reading of raw is which of the reference.
  const uint64_t raw_ns = host_clocks_.RawNs();
  const uint64_t reference_ns = deps_.timescale.FromRaw(raw_ns);
  batch.exchanges.push_back({.send_raw_ns = raw_ns,
                             .reference_receive_ns = reference_ns,
                             .reference_send_ns = reference_ns,
                             .receive_raw_ns = raw_ns,
                             .reference_epoch = deps_.timescale.epoch(),
                             .path = ProbePath::kPeer});
  ++*waiting_;
  // The callback may run after this is destroyed, so it owns the counter.
  deps_.writer.Submit({.host = ReferenceHost(raw_origin_),
                       .measured_realtime_ns = deps_.clock.RealtimeNs(),
                       .observations = EncodeClockEvidence(batch)},
                      [waiting = waiting_](const absl::Status&) { --*waiting; });
}

}  // namespace neurontrace
