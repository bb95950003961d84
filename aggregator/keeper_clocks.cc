// SPDX-License-Identifier: Apache-2.0
#include "aggregator/keeper_clocks.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "aggregator/store/reference_keeper.h"
#include "trace/clock_evidence_codec.h"

namespace neurontrace {

KeeperClocks::KeeperClocks(const Deps& deps, std::string raw_origin)
    : deps_(deps), raw_origin_(std::move(raw_origin)) {
  loop_.PostTask([this] { Start(); });
  thread_ = std::thread([this] { loop_.Run(); });
}

KeeperClocks::~KeeperClocks() {
  loop_.PostTask([this] {
    collector_.reset();
    loop_.Quit();
  });
  thread_.join();
}

void KeeperClocks::Start() {
  collector_ = std::make_unique<ClockCollector>(
      ClockCollector::Deps{loop_, host_clocks_, files_, random_}, ClockPaths{},
      ClockCollector::Hooks{.on_batch = [this](ClockEvidence batch) { Store(std::move(batch)); },
                            .on_break = nullptr,
                            .on_beat = nullptr});
  if (const absl::Status status = collector_->Start(); !status.ok()) {
    SPDLOG_WARN("the reference's own clocks are not watched: {}", status.ToString());
  }
}

void KeeperClocks::Store(ClockEvidence batch) {
  if (*waiting_ >= kBatchesWaitingMax) {
    deps_.metrics.own_batches_dropped.Increment();
    if (!std::exchange(has_dropped_, true)) {
      SPDLOG_WARN("evidence of the reference's own clocks is dropped: the store takes none");
    }
    return;
  }
  // Which reading of raw is which of the reference.
  const uint64_t raw_ns = host_clocks_.RawNs();
  const uint64_t reference_ns = deps_.timescale.FromRaw(raw_ns);
  batch.exchanges.push_back({.send_raw_ns = raw_ns,
                             .reference_receive_ns = reference_ns,
                             .reference_send_ns = reference_ns,
                             .receive_raw_ns = raw_ns,
                             .reference_epoch = deps_.timescale.epoch(),
                             .path = ProbePath::kPeer});
  ++*waiting_;
  deps_.writer.Submit({.host = ReferenceKeeper(raw_origin_),
                       .measured_realtime_ns = deps_.clock.RealtimeNs(),
                       .observations = EncodeClockEvidence(batch)},
                      [waiting = waiting_](const absl::Status&) { --*waiting; });
}

}  // namespace neurontrace
