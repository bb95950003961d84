// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "aggregator/access/guarded_server.h"
#include "aggregator/config.h"
#include "lib/daemon/program_log.h"

namespace neurontrace {

// The composition root: builds, connects and owns everything of one aggregator. Serves from Start
// until its destruction, which lets calls finish for a moment, writes what was received, and closes
// the store. Not thread-safe.
// thread: main: waits for signals and reads changed configuration files
// thread: sequence: the sessions: captures, agents and workers as state machines
class Aggregator {
 public:
  // The process that it runs in.
  struct Process {
    ProgramLog& log;  // must outlive the aggregator
    // Reads the current configuration from command line, environment and files.
    std::function<absl::StatusOr<AggregatorConfig>()> read_config;
  };
  // Starts an aggregator. On return, agents and operators can connect. Checks `config` once more,
  // so a caller need not have called CheckAggregatorConfig. Fails with the errors of the store, of
  // the configuration's files and of the addresses, ready to be shown to people.
  static absl::StatusOr<std::unique_ptr<Aggregator>> Start(const AggregatorConfig& config,
                                                           const Process& process);
  ~Aggregator();
  Aggregator(const Aggregator&) = delete;
  Aggregator& operator=(const Aggregator&) = delete;

  // HOST:PORT with the actual port.
  const std::string& address() const { return server_->address(); }
  // Returns the port of the HTTP pages.
  int health_port() const;
  // Returns the UDP port of clock probes; 0: none.
  uint16_t probe_port() const;
  // Returns the address of the page for people; "" if it is not served.
  std::string page_url() const;
  // See Storage::must_restart.
  bool must_restart() const;
  // Called about once a second by the thread that started it. Reads configuration files that have
  // changed, or all of them with `force`.
  void ReloadChangedFiles(bool force);

 private:
  // The three parts are in the .cc file, from the bottom up: clocks and loop, parts that can fail
  // to open, and everything that uses them.
  struct World;
  struct Owners;
  class Core;
  Aggregator(std::unique_ptr<Core> core, std::unique_ptr<GuardedServer> server);

  const std::unique_ptr<Core> core_;       // everything but the server
  std::unique_ptr<GuardedServer> server_;  // null only in the destructor
};

}  // namespace neurontrace
