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

// The configuration of neurontrace-agent, from the command line, the environment and the file of
// --config. A plain value, made by ParseAgentConfig, which has checked every value by itself.
// docs/operator/configuration.md describes each option. Sizes are in bytes unless the name has a
// unit.
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
  std::string kineto_directory;                  // empty: PyTorch is not asked for traces
  std::string kineto_group;                      // may use it; name or number, empty: the agent's
  std::vector<std::string> inspect_directories;  // of the vendor's profiler
  bool samples_host = true;                      // processors and memory, while a capture runs
  bool scans_processes = true;                   // for workers that no tap speaks for
  bool command_arguments = false;                // report workers' whole command lines
  std::string stacks_program;                    // path of py-spy; empty: none is run
  // --worker-start-id, --workers-per-node and --worker-count.
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

// Returns the names of the options that a running agent applies when its configuration file
// changes. All others take effect after a restart, which the metric
// neurontrace_agent_options_after_restart shows.
std::set<std::string> AgentOptionsAtOnce();

// Parses the command line. Returns nothing if the program is to exit with `exit_code`: 0 after
// --help or --version, 2 after a wrong option, which has been described on stderr.
std::optional<AgentConfig> ParseAgentConfig(int argc, char** argv, int& exit_code);

// Parses the same command line with the environment and the file as they are now, and prints
// nothing. Fails with INVALID_ARGUMENT and the text that ParseAgentConfig would print. Used for
// reloads.
absl::StatusOr<AgentConfig> ReadAgentConfig(int argc, char** argv);

// Checks what can be checked without starting: that options fit together and that the files of
// certificates can be used. Fails with FAILED_PRECONDITION and a message that names the option and
// the fix. Used by --validate-config and by Agent::Create.
absl::Status CheckAgentConfig(const AgentConfig& config);

// Returns the id of --kineto-group, a name or a number; -1 if it is empty. Fails with
// INVALID_ARGUMENT if there is no such group.
absl::StatusOr<int> FindKinetoGroup(const std::string& group);

// Returns why `id` cannot name an instance or an agent, or an empty string if it can: 1 to 200 of
// letters, digits and - _ . : are allowed. Such names appear unescaped in HTTP headers, file names
// and metric labels.
std::string CheckIdentifier(const std::string& id);

}  // namespace neurontrace
