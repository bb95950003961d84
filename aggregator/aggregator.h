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

// The composition root: builds everything of one aggregator, connects it and owns it. Serves from
// Start to its end; the destructor lets calls finish for a moment, writes what was received, and
// closes the store. Not thread-safe.
// thread: main: waits for signals and reads changed configuration files
// thread: sequence: the sessions: captures, agents and workers as state machines
class Aggregator {
 public:
  // The process that it runs in.
  struct Process {
    ProgramLog& log;  // outlives the aggregator
    // Reads the configuration again, as the command line and the files are now.
    std::function<absl::StatusOr<AggregatorConfig>()> read_config;
  };
  // Fails with the errors of the store, of files of the configuration and of the addresses, as
  // people read them.
  static absl::StatusOr<std::unique_ptr<Aggregator>> Start(const AggregatorConfig& config,
                                                           const Process& process);
  ~Aggregator();
  Aggregator(const Aggregator&) = delete;
  Aggregator& operator=(const Aggregator&) = delete;

  // HOST:PORT, with the real port.
  const std::string& address() const { return server_->address(); }
  int health_port() const;
  // The UDP port of clock probes; 0: there is none.
  uint16_t probe_port() const;
  // See Storage::must_restart.
  bool must_restart() const;
  // Called about once a second by the thread that started it: reads files of the configuration that
  // have changed, or all of them (`force`).
  void ReloadChangedFiles(bool force);

 private:
  struct World;
  struct Owners;
  class Core;
  Aggregator(std::unique_ptr<Core> core, std::unique_ptr<GuardedServer> server);

  const std::unique_ptr<Core> core_;       // everything but the server
  std::unique_ptr<GuardedServer> server_;  // null only within the destructor
};

}  // namespace neurontrace
