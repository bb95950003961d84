// SPDX-License-Identifier: Apache-2.0
// Agent as a process: its pages, and the configuration that changes while it runs.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "base/build_facts.h"
#include "base/post_and_wait.h"
#include "base/status.h"
#include "base/time_units.h"
#include "daemon/process_tables.h"
#include "trace/state_words.h"

namespace neurontrace {
namespace {

constexpr std::chrono::milliseconds kStatusPatience{2'000};
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

ProgramMetrics::Names AgentProgramMetrics(const std::string& instance_id) {
  return {.log_lines_left_out = "neurontrace_agent_log_lines_left_out_total",
          .config_taken = "neurontrace_agent_config_taken_total",
          .config_refused = "neurontrace_agent_config_refused_total",
          .config_good = "neurontrace_agent_config_good",
          .options_after_restart = "neurontrace_agent_options_after_restart",
          .labels = {{"instance_id", instance_id}}};
}

ConfigReload::Hooks Agent::MakeReloadHooks(const Process& process) {
  return {.read = [this, read = process.read_config]() -> absl::StatusOr<OptionTexts> {
            ASSIGN_OR_RETURN(new_config_, read());
            return new_config_.options;
          },
          .apply =
              [this] {
                log_.SetLevel(new_config_.log_level);
                log_.SetFormat(new_config_.log_format);
                drain_ns_ = uint64_t{new_config_.drain_seconds} * 1'000'000'000;
                return absl::OkStatus();
              }};
}

void Agent::LookAtCertificates() {
  const std::optional<absl::Status> news = security_watch_.Look();
  if (!news) return;
  health_.Set(kCertificateCondition, news->ok(), std::string(news->message()));
  if (news->ok()) {
    spdlog::info("new connections see the new files of TLS");
  } else {
    spdlog::error("new connections fail: {}", std::string(news->message()));
  }
}

void Agent::LookAtConfig() {
  reload_.Look(false);
  LookAtCertificates();
  loop_.PostDelayedTask([this] { LookAtConfig(); }, kLookAtConfigNs);
}

StatusPage Agent::MakeStatusPage(const AgentInfo& info) {
  return {
      .program = "neurontrace-agent",
      .build = BuildFacts("neurontrace-agent", {}),
      .tables = [this, info](bool is_local) {
        // The tables are of the agent's sequence.
        auto tables = PostAndWait(loop_, "the agent", kStatusPatience,
                                  [&] { return StatusTables(info, is_local); });
        if (tables.ok()) return *std::move(tables);
        return std::vector<StatusTable>{{"Busy", {}, {{std::string(tables.status().message())}}}};
      }};
}

std::vector<StatusTable> Agent::StatusTables(const AgentInfo& info, bool is_local) {
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
  AppendProcessTables(log_, reload_, is_local, tables);
  return tables;
}

}  // namespace neurontrace
