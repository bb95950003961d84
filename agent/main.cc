// SPDX-License-Identifier: Apache-2.0
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>

#include <cstdio>
#include <optional>
#include <string>

#include "agent/agent.h"
#include "agent/config.h"
#include "agent/instance_identity.h"
#include "agent/spool/spool_check.h"
#include "lib/base/file_system.h"
#include "lib/base/status.h"
#include "lib/base/unique_fd.h"
#include "lib/daemon/daemon_main.h"

namespace {

using neurontrace::AgentConfig;

// The command --spool-check; returns nothing if it was not given. Reads only, so a running agent
// may use the directory at the same time.
std::optional<int> RunCheckSpool(const AgentConfig& config) {
  if (config.spool_check.empty()) return std::nullopt;
  neurontrace::SystemFileSystem files;
  const auto report = neurontrace::CheckSpool(files, config.spool_check);
  if (!report.ok()) {
    std::fprintf(stderr, "neurontrace-agent: %s\n", report.status().ToString().c_str());
    return 1;
  }
  std::fputs((config.spool_check_json ? report->ToJson() : report->ToText()).c_str(), stdout);
  return report->sound() ? 0 : 1;
}

// Runs one agent until it is told to stop. Returns the exit code; fails with the errors of
// Agent::Create.
absl::StatusOr<int> Work(const neurontrace::RunningDaemon<AgentConfig>& daemon) {
  const AgentConfig& config = daemon.config;
  // Signals are read from a descriptor on the agent's sequence, so no handler interrupts it.
  // DaemonMain has blocked them.
  const neurontrace::UniqueFd signals(signalfd(-1, &daemon.signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return neurontrace::Internal("cannot watch for signals");
  const neurontrace::AgentInfo info = neurontrace::ResolveIdentity(config, {});
  spdlog::info("instance {} (from {}), agent {}, aggregator {}", info.instance_id,
               info.instance_id_source, info.agent_id, config.aggregator);
  ASSIGN_OR_RETURN(const auto agent,
                   neurontrace::Agent::Create(config, info, {daemon.log, daemon.read_config}));
  // On stdout and flushed, for scripts and tests that wait until the socket is open.
  std::printf("listening on %s, health on port %d\n", config.socket.c_str(), agent->health_port());
  std::fflush(stdout);
  agent->Run(signals.get());
  return 0;
}

}  // namespace

// DaemonMain has what all daemons share: options, the log, signals and exit codes.
int main(int argc, char** argv) {
  return neurontrace::DaemonMain<AgentConfig>({.name = "neurontrace-agent",
                                               .log_name = "agent",
                                               .parse = neurontrace::ParseAgentConfig,
                                               .read = neurontrace::ReadAgentConfig,
                                               .check = neurontrace::CheckAgentConfig,
                                               .warn = [](const AgentConfig&) {},
                                               .run_command = RunCheckSpool,
                                               .work = Work},
                                              argc, argv);
}
