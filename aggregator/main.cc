// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <optional>
#include <string>

#include "aggregator/access/access_rules.h"
#include "aggregator/aggregator.h"
#include "aggregator/config.h"
#include "aggregator/storage/store_check_command.h"
#include "lib/base/status.h"
#include "lib/daemon/daemon_main.h"

namespace {

using neurontrace::AggregatorConfig;

// Printed before the log exists: with such a file an aggregator would start and receive nothing.
void WarnOfAccess(const AggregatorConfig& config) {
  if (config.access.empty()) return;
  const auto rules = neurontrace::ReadAccessFile(config.access);
  if (!rules.ok() || rules->has_agents()) return;
  std::fprintf(stderr,
               "neurontrace-aggregator: warning: no rule of %s has the role agent: all agents "
               "will be refused\n",
               config.access.c_str());
}

// Returns the exit code of --store-check, or nullopt if it was not requested.
std::optional<int> RunStoreCheckIfAsked(const AggregatorConfig& config) {
  if (!config.store_check) return std::nullopt;
  return neurontrace::RunStoreCheck({.store = config.store, .json = config.json}, stdout, stderr);
}

// Runs the aggregator until a signal ends it. Returns the exit code; 1 asks the supervisor for a
// restart.
absl::StatusOr<int> Work(const neurontrace::RunningDaemon<AggregatorConfig>& daemon) {
  ASSIGN_OR_RETURN(const auto aggregator,
                   neurontrace::Aggregator::Start(daemon.config, {daemon.log, daemon.read_config}));
  // Scripts and tests wait for these lines.
  std::printf("health on port %d\n", aggregator->health_port());
  // The token of a page without TLS is for callers of the gRPC port, and not for logs.
  const std::string page = aggregator->page_url();
  if (!page.empty()) std::printf("page on %s\n", page.substr(0, page.find('?')).c_str());
  std::printf("listening on %s\n", aggregator->address().c_str());
  std::fflush(stdout);
  // SIGHUP reloads all files at once. Otherwise changed files are noticed within a second, which is
  // also the delay until a necessary restart is noticed.
  while (true) {
    const timespec second = {.tv_sec = 1, .tv_nsec = 0};
    const int signal = sigtimedwait(&daemon.signals, nullptr, &second);
    if (signal > 0 && signal != SIGHUP) {
      SPDLOG_INFO("shutting down after signal {}", signal);
      return 0;
    }
    aggregator->ReloadChangedFiles(signal == SIGHUP);
    // Destroying the aggregator first lets calls end; the supervisor then starts it again.
    if (aggregator->must_restart()) return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  return neurontrace::DaemonMain<AggregatorConfig>({.name = "neurontrace-aggregator",
                                                    .log_name = "aggregator",
                                                    .parse = neurontrace::ParseAggregatorConfig,
                                                    .read = neurontrace::ReadAggregatorConfig,
                                                    .check = neurontrace::CheckAggregatorConfig,
                                                    .warn = WarnOfAccess,
                                                    .run_command = RunStoreCheckIfAsked,
                                                    .work = Work},
                                                   argc, argv);
}
