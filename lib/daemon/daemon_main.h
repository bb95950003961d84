// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"
#include "lib/daemon/effective_options.h"
#include "lib/daemon/program_log.h"

namespace neurontrace {

// Raises the process's limit of open files to the hard limit, at most limits::kDescriptorsMax:
// shells and container engines start programs with 1,024, and a fleet has more connections. Fails
// with FAILED_PRECONDITION and a way out if the hard limit is less than limits::kDescriptorsMin.
absl::Status RaiseDescriptorLimit();

// A daemon at work. It has its log, and signals are blocked in all threads, so that it takes them
// by signalfd(2). References are to locals of DaemonMain.
template <typename Config>
struct RunningDaemon {
  // The configuration at the start; a reload does not change it.
  const Config& config;
  ProgramLog& log;
  const sigset_t& signals;  // blocked: SIGTERM and SIGINT end it, SIGHUP reloads its files
  // Returns the configuration of the command line with the current files.
  std::function<absl::StatusOr<Config>()> read_config;
};

// The functions that distinguish one daemon from another. All but `read` and `check`, which reloads
// call too, are called on the main thread only. `Config` has log_level, log_format, validate_config
// and options.
template <typename Config>
struct DaemonProgram {
  // The names in messages and in log lines.
  const char* name;      // "neurontrace-agent"
  const char* log_name;  // "agent"
  // Returns the configuration, or nothing if the program must end at once with `exit_code`: after
  // --help, --version and wrong options, which `parse` has reported.
  std::optional<Config> (*parse)(int argc, char** argv, int& exit_code);
  // Parses again with the current files.
  absl::StatusOr<Config> (*read)(int argc, char** argv);
  // Checks the files and addresses that the configuration names.
  absl::Status (*check)(const Config& config);
  // Prints for --validate-config, on stderr, settings that are valid but probably unintended.
  void (*warn)(const Config& config);
  // Runs a command that the options ask for instead of working. Returns its exit code, or nothing
  // if there is none.
  std::optional<int> (*run_command)(const Config& config);
  // Works until a signal. Returns the exit code; a failure is logged, and the exit code is then 1.
  absl::StatusOr<int> (*work)(const RunningDaemon<Config>& daemon);
};

// Prints the options and returns 0 if `status` is OK; otherwise prints the problem on stderr and
// returns 2.
int PrintValidation(const char* program, const absl::Status& status,
                    const EffectiveOptions& options);

// Prepares the process before any thread is made: limits, gRPC, and `signals`, which are blocked.
// Fails if the limit of open files is too low.
absl::Status PrepareDaemon(sigset_t& signals);

// The main function of a daemon. Returns the exit code of the process.
template <typename Config>
int DaemonMain(const DaemonProgram<Config>& program, int argc, char** argv) {
  // Before anything is opened, so that no file becomes standard output.
  OpenStandardDescriptors();
  int exit_code = 0;
  const std::optional<Config> config = program.parse(argc, argv, exit_code);
  if (!config) return ExitCodeAfterOutput(program.name, exit_code);
  ProgramLog log(program.log_name);
  log.SetLevel(config->log_level);
  log.SetFormat(config->log_format);
  // Validation ends before any thread exists or port is opened.
  if (config->validate_config) {
    const absl::Status checked = program.check(*config);
    if (checked.ok()) program.warn(*config);
    exit_code = PrintValidation(program.name, checked, config->options);
    return ExitCodeAfterOutput(program.name, exit_code);
  }
  if (const std::optional<int> ended = program.run_command(*config)) {
    return ExitCodeAfterOutput(program.name, *ended);
  }
  sigset_t signals;
  if (const absl::Status status = PrepareDaemon(signals); !status.ok()) {
    std::fprintf(stderr, "%s: %s\n", program.name, std::string(status.message()).c_str());
    return 1;
  }
  // Used at each reload: the new files must pass the same checks as at the start.
  const auto read_config = [&]() -> absl::StatusOr<Config> {
    ASSIGN_OR_RETURN(Config read, program.read(argc, argv));
    RETURN_IF_ERROR(program.check(read));
    return read;
  };
  const absl::StatusOr<int> ended = program.work({*config, log, signals, read_config});
  if (!ended.ok()) SPDLOG_CRITICAL("{}", std::string(ended.status().message()));
  return ended.value_or(1);
}

}  // namespace neurontrace
