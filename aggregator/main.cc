// SPDX-License-Identifier: Apache-2.0
#include <absl/synchronization/mutex.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <string_view>

#include "aggregator/access/access_rules.h"
#include "aggregator/aggregator.h"
#include "aggregator/config.h"
#include "aggregator/store_check_command.h"
#include "base/standard_streams.h"
#include "base/status.h"
#include "daemon/descriptor_limit.h"
#include "daemon/option_texts.h"
#include "daemon/program_log.h"
#include "wire/grpc_set_up.h"

namespace {

constexpr char kProgram[] = "neurontrace-aggregator";

int ValidateConfig(const neurontrace::AggregatorConfig& config) {
  const absl::Status status = neurontrace::CheckAggregatorConfig(config);
  if (!status.ok()) {
    std::fprintf(stderr, "neurontrace-aggregator: %s\n", std::string(status.message()).c_str());
    return 2;
  }
  if (!config.access.empty()) {
    const auto rules = neurontrace::ReadAccessFile(config.access);
    if (rules.ok() && !rules->has_agents()) {
      std::fprintf(stderr,
                   "neurontrace-aggregator: warning: no rule of %s has the role agent: all agents "
                   "will be refused\n",
                   config.access.c_str());
    }
  }
  std::fputs(neurontrace::DescribeOptions("neurontrace-aggregator", config.options).c_str(),
             stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  neurontrace::OpenStandardDescriptors();
  int exit_code = 0;
  const auto config = neurontrace::ParseAggregatorConfig(argc, argv, exit_code);
  if (!config) return neurontrace::ExitCodeAfterOutput(kProgram, exit_code);
  if (config->validate_config) {
    return neurontrace::ExitCodeAfterOutput(kProgram, ValidateConfig(*config));
  }
  neurontrace::ProgramLog log("aggregator");
  log.SetLevel(config->log_level);
  log.SetFormat(config->log_format);
  if (config->store_check) {
    return neurontrace::ExitCodeAfterOutput(kProgram,
                                            neurontrace::RunStoreCheck(*config, stdout, stderr));
  }

  if (const absl::Status status = neurontrace::RaiseDescriptorLimit(); !status.ok()) {
    std::fprintf(stderr, "neurontrace-aggregator: %s\n", std::string(status.message()).c_str());
    return 1;
  }

  // Debian's Abseil looks for deadlocks at every lock, and gRPC takes many.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);

  neurontrace::SetUpGrpc([](std::string_view line) { SPDLOG_WARN("{}", line); });

  // Before any thread is made, so that all of them leave the signals to this one.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const auto aggregator = neurontrace::Aggregator::Start(
      *config, {.log = log, .read_config = [&]() -> absl::StatusOr<neurontrace::AggregatorConfig> {
                  auto read = neurontrace::ReadAggregatorConfig(argc, argv);
                  if (read.ok()) RETURN_IF_ERROR(neurontrace::CheckAggregatorConfig(*read));
                  return read;
                }});
  if (!aggregator.ok()) {
    SPDLOG_CRITICAL("{}", std::string(aggregator.status().message()));
    return 1;
  }
  std::printf("health on port %d\nlistening on %s\n", (*aggregator)->health_port(),
              (*aggregator)->address().c_str());
  std::fflush(stdout);

  while (true) {
    const timespec second = {.tv_sec = 1, .tv_nsec = 0};
    const int signal = sigtimedwait(&signals, nullptr, &second);
    if (signal > 0 && signal != SIGHUP) {
      SPDLOG_INFO("ending after signal {}", signal);
      return 0;
    }
    (*aggregator)->LookAtFiles(signal == SIGHUP);
    if ((*aggregator)->cannot_go_on()) return 1;
  }
}
