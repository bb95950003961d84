// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_clocks.h"

#include <spdlog/spdlog.h>

#include <cassert>
#include <utility>

#include "agent/clock/stream_prober.h"
#include "agent/grpc_streams.h"
#include "lib/wire/grpc_channel.h"

namespace neurontrace {
namespace {

// Metrics are read once a second, so five copies a second are fresh enough and cost nothing.
constexpr uint64_t kTicksPerPublish = 4;

}  // namespace

AgentClocks::AgentClocks(const AgentConfig& config, const AgentInfo& info) {
  // Queued before the thread starts, so that Start is the first task of the sequence.
  loop_.PostTask([this, config, info] { Start(config, info); });
  thread_ = std::thread([this] { loop_.Run(); });
}

AgentClocks::~AgentClocks() {
  // In reverse order of construction, on the sequence, as each part has watches and timers there.
  // The collector is first, since it calls all others.
  loop_.PostTask([this] {
    collector_.reset();
    link_.reset();
    prober_.reset();
    stream_.reset();
    udp_.reset();
    loop_.Quit();
  });
  thread_.join();
}

void AgentClocks::Start(const AgentConfig& config, const AgentInfo& info) {
  assert(loop_.RunsTasksOnCurrentThread() && collector_ == nullptr);
  // The probers are made before the collector but answer only after Start of the link, by which
  // time collector_ is set.
  ExchangeSink& exchanges = *this;  // private bases, which make_unique cannot convert to
  EvidenceLink::AccessListener& access_listener = *this;
  ClockCollector::Listener& clock_listener = *this;
  udp_ = std::make_unique<UdpProber>(host_clocks_, loop_, exchanges);
  // A connection each, so that probes wait behind nothing.
  stream_ = std::make_unique<StreamProber>(
      MakeGrpcProbeConnector(MakeChannel(config.aggregator, config.security), loop_, host_clocks_),
      host_clocks_, loop_, exchanges);
  // The prober chooses between the two transports; see --clock-probes.
  prober_ = std::make_unique<ClockProber>(config.clock_probes, *udp_, *stream_, random_);
  link_ = std::make_unique<EvidenceLink>(
      MakeGrpcEvidenceConnector(MakeChannel(config.aggregator, config.security), info, loop_),
      host_clocks_, loop_, random_, access_listener);
  // The collector is last, as what it reports goes to the others.
  collector_ = std::make_unique<ClockCollector>(
      ClockCollector::Deps{loop_, host_clocks_, files_, random_}, ClockPaths{}, clock_listener);
  if (const absl::Status status = collector_->Start(); !status.ok()) {
    spdlog::error("clock: no measurements: {}", status.ToString());
    return;
  }
  link_->Start();
}

void AgentClocks::OnTick() {
  prober_->OnTick();
  if (++ticks_ % kTicksPerPublish == 0) Publish();
}

void AgentClocks::Publish() {
  assert(loop_.RunsTasksOnCurrentThread());
  Stats stats{.collector = collector_->counters(),
              .utc = collector_->utc_counters(),
              .snapshots_dropped = collector_->snapshots_dropped(),
              .udp = udp_->counters(),
              .udp_without_kernel_stamp = udp_->without_kernel_stamp(),
              .stream = stream_->counters(),
              .link = link_->counters(),
              .backlog_batches = link_->backlog_batches(),
              .backlog_bytes = link_->backlog_bytes(),
              .connected = link_->connected(),
              .uses_stream = prober_->uses_stream()};
  const MutexLock lock(mutex_);
  stats_ = stats;
}

// flushing_ is set before the task is posted: settled() must not answer with the state from before.
void AgentClocks::Flush() {
  {
    const MutexLock lock(mutex_);
    flushing_ = true;
  }
  loop_.PostTask([this] {
    if (collector_ == nullptr) return;
    collector_->FlushNow();
    Publish();
    const MutexLock lock(mutex_);
    flushing_ = false;
  });
}

bool AgentClocks::settled() const {
  const MutexLock lock(mutex_);
  // Not connected: waiting would be in vain, and the backlog is lost with this process.
  return !flushing_ && (stats_.backlog_batches == 0 || !stats_.connected);
}

AgentClocks::Stats AgentClocks::stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

}  // namespace neurontrace
