// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "agent/agent.h"
#include "agent/config.h"
#include "agent/instance_identity.h"
#include "agent/spool/spool_check.h"
#include "base/file_system.h"
#include "base/standard_streams.h"
#include "base/status.h"
#include "daemon/descriptor_limit.h"
#include "daemon/option_texts.h"
#include "daemon/program_log.h"
#include "wire/grpc_set_up.h"

namespace {

constexpr char kProgram[] = "neurontrace-agent";

int CheckSpoolFor(const neurontrace::AgentConfig& config) {
  neurontrace::SystemFileSystem files;
  const auto report = neurontrace::CheckSpool(files, config.spool_check);
  if (!report.ok()) {
    std::fprintf(stderr, "neurontrace-agent: %s\n", report.status().ToString().c_str());
    return 1;
  }
  std::fputs((config.spool_check_json ? report->ToJson() : report->ToText()).c_str(), stdout);
  return report->sound() ? 0 : 1;
}

int ValidateConfig(const neurontrace::AgentConfig& config) {
  const absl::Status status = neurontrace::CheckAgentConfig(config);
  if (!status.ok()) {
    std::fprintf(stderr, "neurontrace-agent: %s\n", std::string(status.message()).c_str());
    return 2;
  }
  std::fputs(neurontrace::DescribeOptions("neurontrace-agent", config.options).c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  neurontrace::OpenStandardDescriptors();
  int exit_code = 0;
  const auto config = neurontrace::ParseAgentConfig(argc, argv, exit_code);
  if (!config) return neurontrace::ExitCodeAfterOutput(kProgram, exit_code);
  if (!config->spool_check.empty()) {
    return neurontrace::ExitCodeAfterOutput(kProgram, CheckSpoolFor(*config));
  }
  if (config->validate_config) {
    return neurontrace::ExitCodeAfterOutput(kProgram, ValidateConfig(*config));
  }
  neurontrace::ProgramLog log("agent");
  log.SetLevel(config->log_level);
  log.SetFormat(config->log_format);

  if (const absl::Status status = neurontrace::RaiseDescriptorLimit(); !status.ok()) {
    std::fprintf(stderr, "neurontrace-agent: %s\n", std::string(status.message()).c_str());
    return 1;
  }

  neurontrace::SetUpGrpc([](std::string_view line) { spdlog::warn("{}", line); });

  // Before any thread is made, so that all of them leave the signals to the agent's.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);

  const neurontrace::AgentInfo info = neurontrace::ResolveIdentity(*config, {});
  spdlog::info("instance {} (from {}), agent {}, aggregator {}", info.instance_id,
               info.instance_id_source, info.agent_id, config->aggregator);
  const auto agent = neurontrace::Agent::Create(
      *config, info, {.log = log, .read_config = [&]() -> absl::StatusOr<neurontrace::AgentConfig> {
                        auto read = neurontrace::ReadAgentConfig(argc, argv);
                        if (read.ok()) RETURN_IF_ERROR(neurontrace::CheckAgentConfig(*read));
                        return read;
                      }});
  if (signal_fd < 0 || !agent.ok()) {
    spdlog::critical(
        "{}", signal_fd < 0 ? "cannot watch for signals" : std::string(agent.status().message()));
    return 1;
  }
  std::printf("listening on %s, health on port %d\n", config->socket.c_str(),
              (*agent)->health_port());
  std::fflush(stdout);
  (*agent)->Run(signal_fd);
  close(signal_fd);
  return 0;
}
