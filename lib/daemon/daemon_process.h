// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/labels.h>
#include <prometheus/registry.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/base/task_runner.h"
#include "lib/daemon/config_reload.h"
#include "lib/daemon/effective_options.h"
#include "lib/daemon/program_log.h"
#include "lib/health/health_server.h"
#include "lib/health/health_state.h"
#include "lib/health/loop_watchdog.h"
#include "lib/wire/security_watch.h"

namespace neurontrace {

// The parts that every daemon of neurontrace has as a process: its log, the configuration file that
// may change while it runs, the state of its certificates, and its HTTP port. Agent and aggregator
// have one each; the functions say which thread calls them.
class DaemonProcess {
 public:
  // Objects of main that the process shares with the rest of the daemon. They must outlive it.
  struct Deps {
    ProgramLog& log;
    HealthState& health;
    std::shared_ptr<prometheus::Registry> registry;
    const LoopWatchdog& turns;  // of the daemon's sequence
    const Clock& clock;
  };
  // The names of the metrics, which begin with the program's.
  struct MetricNames {
    // Counters: lines that the limiter suppressed, then versions of the file that were applied or
    // refused.
    const char* log_lines_left_out;
    const char* config_taken;
    const char* config_refused;
    // Gauges: whether the file is valid, options that wait for a restart, conditions, age of the
    // sequence.
    const char* config_good;
    const char* options_after_restart;
    const char* ready_condition;
    const char* sequence_age;
  };
  // The constants of the program; copied.
  struct Options {
    std::string program;  // "neurontrace-agent"
    MetricNames metrics;
    prometheus::Labels labels;  // of these metrics
    std::string config_file;    // see ConfigReload, as the next two
    EffectiveOptions options;   // in force
    // Names of the options that ConfigReload may apply without a restart.
    std::set<std::string> at_once;
    // Copied; the files that it names are read again when they change.
    ChannelSecurity security;
    std::string address;  // see SecurityWatch, as the next
    ChannelSide side;
  };
  DaemonProcess(Deps deps, const Options& options, ConfigReload::Hooks hooks);
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  // Logs which private files other users may read. With TLS also declares the condition of the
  // certificates. Called once.
  void DeclareCertificates();
  // Listens on HOST:PORT; fails as HealthServer::Start does. Called once.
  absl::Status StartPages(const std::string& address, const std::vector<std::string>& names);
  // Adds /statusz: the tables that `tables` returns on `sequence`, the log and the configuration.
  // `sequence` must outlive StopPages.
  void AddStatusPage(TaskRunner& sequence, std::function<std::vector<StatusTable>()> tables);
  // Stops serving. Called before objects that the pages show are destroyed.
  void StopPages() { pages_.reset(); }
  // Returns the HTTP server, to add pages. Valid between StartPages and StopPages.
  HealthServer& pages() { return *pages_; }
  // Returns the port of the pages, for tests and the log, as port 0 picks a free one. Valid as
  // pages().
  int health_port() const { return pages_->port(); }

  // Called every few seconds on one thread, which it blocks for the disk. Applies a changed file of
  // options (`anyway`: in any case), and reports certificates that became invalid or valid.
  void ReloadChangedFiles(bool anyway);
  // Publishes the metrics of log and configuration. Called on one thread.
  void Publish();

 private:
  // Appends the log's warnings and the configuration to the tables of /statusz. Any thread.
  void AppendTables(bool is_local, std::vector<StatusTable>& tables) const;

  const Deps deps_;
  const std::string program_;
  const MetricNames names_;
  const prometheus::Labels labels_;
  const ChannelSecurity security_;
  ConfigReload reload_;
  // Used by the thread of ReloadChangedFiles only.
  SecurityWatch security_watch_;
  // Owned by the registry.
  prometheus::Counter& log_lines_left_out_;
  prometheus::Counter& config_taken_;
  prometheus::Counter& config_refused_;
  prometheus::Gauge& config_good_;
  prometheus::Gauge& options_after_restart_;
  // Null before StartPages and after StopPages.
  std::unique_ptr<HealthServer> pages_;
};

// Returns hooks that read the configuration with `read`, and apply the options of the log and, with
// `apply`, the daemon's own. `log` must outlive them.
template <typename Config>
ConfigReload::Hooks MakeReloadHooks(ProgramLog& log, std::function<absl::StatusOr<Config>()> read,
                                    std::function<void(const Config&)> apply) {
  const auto config = std::make_shared<Config>();
  return {.read = [config, read = std::move(read)]() -> absl::StatusOr<EffectiveOptions> {
            ASSIGN_OR_RETURN(*config, read());
            return config->options;
          },
          .apply =
              [config, &log, apply = std::move(apply)] {
                log.SetLevel(config->log_level);
                log.SetFormat(config->log_format);
                apply(*config);
                return absl::OkStatus();
              }};
}

}  // namespace neurontrace
