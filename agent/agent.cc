// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>

#include "agent/grpc_control_stream.h"
#include "agent/ranks/rank_resolver.h"
#include "agent/upload/grpc_upload_stream.h"
#include "base/status.h"
#include "wire/grpc_channel.h"

namespace neurontrace {
namespace {

constexpr uint64_t kPublishNs = 1'000'000'000;
constexpr uint64_t kDrainLookNs = 20'000'000;
constexpr char kAggregatorCondition[] = "aggregator";
constexpr char kSocketCondition[] = "socket";
constexpr char kDataFlowCondition[] = "data flow";

// Sources may not look at agent/ranks, so the two meet here.
RankResolver MakeRankResolver(const ConfiguredRanks& configured) {
  return [configured](const RankInputs& inputs) -> ResolvedRanks {
    RankFacts facts;
    facts.environment = inputs.environment;
    for (const auto& [core, observed] : inputs.communicators) {
      facts.communicators[core] = {observed.g_device_id, observed.g_device_count};
    }
    facts.event_gids = inputs.event_gids;
    facts.visible_cores = inputs.visible_cores;
    facts.local_ordinal = inputs.local_ordinal;
    facts.workers_on_node = inputs.workers_on_node;
    facts.configured = configured;
    RankResolution resolution = neurontrace::ResolveRanks(facts);
    return {std::move(resolution.cores), std::move(resolution.warnings)};
  };
}

TapSource::Options TapOptions(const AgentConfig& config, const AgentInfo& info) {
  TapSource::Options options;
  options.server.path = config.socket;
  options.agent_id = info.agent_id;
  options.instance_id = info.instance_id;
  options.boot_id = info.boot_id;
  return options;
}

}  // namespace

Agent::Agent(const AgentConfig& config, const AgentInfo& info)
    : drain_ns_(uint64_t{config.drain_seconds} * 1'000'000'000),
      // Control and upload have a connection each, so that reports never wait behind chunks.
      uploader_(queue_,
                MakeGrpcUploadConnector(MakeChannel(config.aggregator, {}), info.agent_id, loop_),
                loop_, random_),
      control_(info, MakeGrpcControlConnector(MakeChannel(config.aggregator, {}), loop_), clock_,
               loop_, random_,
               {.on_welcome =
                    [this] {
                      health_.Set(kAggregatorCondition, true);
                      uploader_.SetEnabled(true);
                    },
                .on_lost =
                    [this] {
                      health_.Set(kAggregatorCondition, false, "the connection is lost");
                      uploader_.SetEnabled(false);
                    },
                .on_capture_over = [this](const CaptureId& id) { uploader_.ForgetCapture(id); }}),
      taps_(TapOptions(config, info), loop_, clock_, queue_, control_,
            MakeRankResolver(config.ranks), source_metrics_),
      framework_({.agent_id = info.agent_id,
                  .instance_id = info.instance_id,
                  .boot_id = info.boot_id,
                  .files = config.framework_files,
                  .directory = config.framework_directory},
                 clock_, loop_, queue_, control_, source_metrics_),
      metrics_(*registry_, info.instance_id,
               {source_metrics_, queue_, uploader_, control_, taps_, clock_}) {
  health_.Declare(kAggregatorCondition, HealthState::Severity::kReadiness, "not connected yet");
  health_.Declare(kSocketCondition, HealthState::Severity::kReadiness, "not listening yet");
  health_.Declare(kDataFlowCondition, HealthState::Severity::kReadiness, "not looked at yet");
  control_.AddSource(taps_);
  control_.AddSource(framework_);
}

Agent::~Agent() = default;

absl::StatusOr<std::unique_ptr<Agent>> Agent::Create(const AgentConfig& config,
                                                     const AgentInfo& info) {
  std::unique_ptr<Agent> agent(new Agent(config, info));
  RETURN_IF_ERROR(agent->Start(config));
  return agent;
}

absl::Status Agent::Start(const AgentConfig& config) {
  RETURN_IF_ERROR(taps_.Start());
  health_.Set(kSocketCondition, true);
  ASSIGN_OR_RETURN(health_server_, HealthServer::Start(config.health_address, registry_, health_));
  return absl::OkStatus();
}

void Agent::Run(int signal_fd) {
  loop_.AddReadableWatch(signal_fd, [this, signal_fd] { OnSignal(signal_fd); });
  loop_.PostTask([this] {
    control_.Start();
    PublishMetrics();
  });
  loop_.Run();
  loop_.RemoveReadableWatch(signal_fd);
}

void Agent::OnSignal(int signal_fd) {
  signalfd_siginfo signal{};
  if (read(signal_fd, &signal, sizeof(signal)) != sizeof(signal)) return;
  if (std::exchange(ending_, true)) {
    spdlog::warn("signal {} again: ending at once", signal.ssi_signo);
    loop_.Quit();
    return;
  }
  spdlog::info("signal {}: ending, {} chunks wait for the aggregator", signal.ssi_signo,
               queue_.chunks());
  health_.Set(kSocketCondition, false, "shutting down");
  queue_.Close();
  Drain(clock_.MonotonicNs() + drain_ns_);
}

void Agent::Drain(uint64_t deadline_ns) {
  const bool drained = queue_.chunks() == 0;
  // Without an aggregator there is nobody to wait for.
  if (!drained && uploader_.connected() && clock_.MonotonicNs() < deadline_ns) {
    loop_.PostDelayedTask([this, deadline_ns] { Drain(deadline_ns); }, kDrainLookNs);
    return;
  }
  spdlog::info("ended, {} chunks were not acknowledged", queue_.chunks());
  control_.Stop();
  uploader_.SetEnabled(false);
  loop_.Quit();
}

void Agent::PublishMetrics() {
  metrics_.Publish();
  const auto stall = DescribeStall(source_metrics_.canary_watch, clock_.MonotonicNs());
  health_.Set(kDataFlowCondition, !stall, stall.value_or(""));
  loop_.PostDelayedTask([this] { PublishMetrics(); }, kPublishNs);
}

}  // namespace neurontrace
