// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/clock/clock_prober.h"
#include "agent/ranks/rank_resolver.h"
#include "lib/daemon/effective_options.h"
#include "lib/daemon/program_log.h"
#include "lib/trace/limits.h"
#include "lib/wire/channel_security.h"
#include "lib/wire/trigger_posts.h"

namespace neurontrace {

// What the command line and the environment of neurontrace-agent say.
struct AgentConfig {
  std::string aggregator;  // HOST:PORT
  ChannelSecurity security;
  std::string socket = "/run/neurontrace/agent.sock";
  uint32_t socket_mode = 0660;  // who may connect to it, as chmod(2) has it
  std::string instance_id;      // empty: to be found out
  std::string agent_id;         // empty: derived
  std::string pod_resources;    // path of the kubelet's socket; empty: it is not asked
  std::vector<std::string> framework_files;
  std::string framework_directory;               // empty: none
  std::vector<std::string> inspect_directories;  // of the vendor's profiler
  bool samples_host = true;                      // processors and memory, while a capture runs
  bool scans_processes = true;                   // for workers that no tap speaks for
  bool command_arguments = false;                // report workers' whole command lines
  ConfiguredRanks ranks;
  std::string health_address = "127.0.0.1:9401";  // HTTP, HOST:PORT; port 0 picks a free one
  std::vector<std::string> health_names;          // by which it may be asked; see HealthServer
  std::string log_level = "info";
  LogFormat log_format = LogFormat::kText;
  std::string spool = "/var/lib/neurontrace/spool";  // directory; "none": chunks stay in memory
  uint64_t spool_bytes = limits::kSpoolBytesDefault;
  uint64_t spool_capture_bytes = 0;  // 0: half of spool_bytes
  uint32_t spool_free_percent = 0;   // of its disk, which stay free
  bool spool_drops_oldest = true;    // when full; else newest chunks wait
  bool spool_adopts = false;         // gives up what is for an aggregator with another store
  bool spool_syncs = true;           // else the kernel writes when it likes
  std::string spool_check;           // not empty: check this directory, and nothing else
  bool spool_check_json = false;
  ProbeMode clock_probes = ProbeMode::kAuto;
  TriggerPosts trigger_posts = TriggerPosts::kThisMachine;
  uint32_t drain_seconds = 20;   // how long an agent that is told to end waits for answers
  std::string config_file;       // where options stand that may change; empty: nowhere
  bool validate_config = false;  // say whether all of this is good, and end
  EffectiveOptions options;      // all of this, as texts
};

// Options that an agent takes from a changed file without a restart.
std::set<std::string> AgentOptionsAtOnce();

// Reads the command line. Nothing when the program is to end at once, with `exit_code`: help and
// version were printed (0), or what is wrong (2).
std::optional<AgentConfig> ParseAgentConfig(int argc, char** argv, int& exit_code);

// The same command line, with the environment and the file as they are now: INVALID_ARGUMENT says
// what is wrong.
absl::StatusOr<AgentConfig> ReadAgentConfig(int argc, char** argv);

// Whether what the configuration names is there and fits together, as far as can be seen without
// beginning to work: FAILED_PRECONDITION names the option, and what to do.
absl::Status CheckAgentConfig(const AgentConfig& config);

// Why `id` cannot name an instance or an agent; empty if it can. Such names travel in HTTP headers,
// file names and metrics.
std::string CheckIdentifier(const std::string& id);

}  // namespace neurontrace
