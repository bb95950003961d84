// SPDX-License-Identifier: Apache-2.0
// Agent as a process: its pages, and the configuration that changes while it runs.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "base/time_units.h"
#include "daemon/daemon_process.h"
#include "trace/state_words.h"

namespace neurontrace {
namespace {

constexpr uint64_t kLookAtConfigNs = 2'000'000'000;

std::string CoresOf(const WorkerInfo& worker) {
  std::string cores;
  for (const CoreInfo& core : worker.cores) {
    if (!cores.empty()) cores += ' ';
    cores += std::to_string(core.nc_idx);
    if (!core.rank_evidence.empty()) {
      cores += fmt::format(" (rank {})", core.rank_evidence.front().worker_gid);
    }
  }
  return cores;
}

StatusTable WorkersTable(const ControlSession& control, const TapSource::Headroom& headroom) {
  StatusTable table{"Workers", {"pid", "state", "cores", "ring holds", "runtime", "detail"}, {}};
  for (const auto& [identity, worker] : control.workers()) {
    std::string holds;
    for (const CoreInfo& core : worker.cores) {
      const auto it = headroom.rings.find(core.nc_idx);
      if (it == headroom.rings.end()) continue;
      holds += (holds.empty() ? "" : " ") + FormatSeconds(it->second);
    }
    table.rows.push_back({std::to_string(identity.pid), std::string(WordsOf(worker.state)),
                          CoresOf(worker), std::move(holds), worker.runtime_version,
                          worker.detail});
  }
  return table;
}

StatusTable CapturesTable(const ControlSession& control) {
  StatusTable table{"Captures", {"capture", "kind", "state", "workers that record"}, {}};
  for (const ControlSession::CaptureState& capture : control.CaptureStates()) {
    const char* const state =
        capture.finished ? "delivered" : (capture.stopping ? "stopping" : "begun or armed");
    table.rows.push_back({capture.id.ToString(), std::string(WordsOf(capture.mode)), state,
                          std::to_string(capture.recording)});
  }
  return table;
}

}  // namespace

DaemonProcess::Options Agent::ProcessOptions(const AgentConfig& config, const AgentInfo& info) {
  return {.program = "neurontrace-agent",
          .metrics = {.log_lines_left_out = "neurontrace_agent_log_lines_left_out_total",
                      .config_taken = "neurontrace_agent_config_taken_total",
                      .config_refused = "neurontrace_agent_config_refused_total",
                      .config_good = "neurontrace_agent_config_good",
                      .options_after_restart = "neurontrace_agent_options_after_restart",
                      .ready_condition = "neurontrace_agent_ready_condition",
                      .sequence_age = "neurontrace_agent_sequence_age_seconds"},
          .labels = {{"instance_id", info.instance_id}},
          .config_file = config.config_file,
          .options = config.options,
          .at_once = AgentOptionsAtOnce(),
          .security = config.security,
          .address = config.aggregator,
          .side = ChannelSide::kClient};
}

ConfigReload::Hooks Agent::MakeReloadHooks(const Process& process) {
  return neurontrace::MakeReloadHooks<AgentConfig>(
      process.log, process.read_config, [this](const AgentConfig& config) {
        drain_ns_ = uint64_t{config.drain_seconds} * 1'000'000'000;
      });
}

void Agent::LookAtConfig() {
  process_.LookAtFiles(false);
  loop_.PostDelayedTask([this] { LookAtConfig(); }, kLookAtConfigNs);
}

std::vector<StatusTable> Agent::StatusTables(const AgentInfo& info) {
  const auto seconds = [](uint64_t ns) { return fmt::format("{} s", ns / 1'000'000'000); };
  std::vector<StatusTable> tables;
  tables.push_back(
      {"This agent",
       {},
       {{"instance", fmt::format("{} ({})", info.instance_id, info.instance_id_source)},
        {"agent", info.agent_id},
        {"boot", info.boot_id},
        {"running for", seconds(clock_.MonotonicNs() - began_monotonic_ns_)}}});
  tables.push_back(WorkersTable(control_, taps_.headroom()));
  tables.push_back(CapturesTable(control_));
  StatusTable delivery{"Delivery",
                       {},
                       {{"chunks that wait", std::to_string(queue_.chunks())},
                        {"of these not yet on the disk", std::to_string(queue_.unkept_chunks())},
                        {"upload", uploader_.connected() ? "connected" : "not connected"}}};
  if (spool_ != nullptr) {
    delivery.rows.push_back(
        {"spool", fmt::format("{} of {} bytes, for aggregator {}", spool_->bytes(),
                              spool_->bytes_max(), spool_->aggregator_id())});
  }
  tables.push_back(std::move(delivery));
  return tables;
}

}  // namespace neurontrace
