// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/config_file.h"
#include "cli/exit_code.h"
#include "lib/wire/channel_security.h"
#include "neurontrace/v1/operator_service.grpc.pb.h"

namespace neurontrace::cli {

// State that every command uses. Lives in main for the whole run; used by one thread, except that
// the client of the service may be called from any.
struct Context {
  std::string aggregator;  // HOST:PORT
  ChannelSecurity security;
  bool json = false;      // --output json
  bool quiet = false;     // nothing on stderr except errors
  bool progress = false;  // stderr is a terminal, and --quiet was not given
  size_t columns = 0;     // of the terminal at standard output; 0: it is not one
  uint32_t connect_timeout_ms = 5'000;
  // How long an interrupted export is retried; shorter in unit tests.
  uint32_t export_retry_ms = 60'000;
  std::FILE* results = stdout;             // where an export reports its files
  std::vector<ConfigPlace> config_places;  // files of options, later ones override
  ConfigOrigins config_origins;            // which of their lines are in effect
  std::vector<std::string> words;          // typed after the program's name, up to a --
  std::vector<std::string> command_line;   // after the --: the command that `record` runs

  // Makes the client of the aggregator's service on first use. Unit tests put a fake here.
  std::function<std::unique_ptr<v1::OperatorService::StubInterface>(const Context&)> make_stub;
  // Returns the client, creating it at the first call. Never fails: gRPC connects later.
  v1::OperatorService::StubInterface& stub();
  // Returns the client, or null if no command has needed it yet.
  v1::OperatorService::StubInterface* made_stub() const { return stub_.get(); }

 private:
  std::unique_ptr<v1::OperatorService::StubInterface> stub_;
};

// Every command adds itself to the parser. When the parser meets the command, it sets `run` to a
// function that executes it and returns the exit code.
using Run = std::function<int()>;
void AddStatusCommand(CLI::App& app, Context& context, Run& run);
void AddWorkersCommand(CLI::App& app, Context& context, Run& run);
void AddClocksCommand(CLI::App& app, Context& context, Run& run);
void AddCaptureCommand(CLI::App& app, Context& context, Run& run);
void AddCapturesCommand(CLI::App& app, Context& context, Run& run);
void AddExportCommand(CLI::App& app, Context& context, Run& run);
void AddFlightRecorderCommand(CLI::App& app, Context& context, Run& run);
void AddWatchCommand(CLI::App& app, Context& context, Run& run);
void AddTriggersCommand(CLI::App& app, Context& context, Run& run);
void AddWhyCommand(CLI::App& app, Context& context, Run& run);
void AddStacksCommand(CLI::App& app, Context& context, Run& run);
void AddArtifactsCommand(CLI::App& app, Context& context, Run& run);
void AddViewCommand(CLI::App& app, Context& context, Run& run);
void AddValidateCommand(CLI::App& app, Context& context, Run& run);
void AddRecordCommand(CLI::App& app, Context& context, Run& run);
void AddRunCommand(CLI::App& app, Context& context, Run& run);
void AddDoctorCommand(CLI::App& app, Context& context, Run& run);
void AddConfigCommand(CLI::App& app, Context& context, Run& run);
void AddCompletionCommand(CLI::App& app, Run& run);

// Prints completions of `words`, one "TEXT<tab>DESCRIPTION" a line, then ":KIND", for the scripts
// of AddCompletionCommand. Returns the exit code.
int PrintCompletions(const CLI::App& app, const std::vector<std::string>& words);

// Runs the whole command line and returns the exit code. Separate from main so that tests can call
// it.
int RunCommandLine(int argc, const char* const* argv, Context& context);

// Print on stderr what failed, and return kExitFailed. For a gRPC status that means no connection,
// the first also prints a likely remedy; it may ask the aggregator once more for the reason.
int Fail(const Context& context, const grpc::Status& status);
int Fail(const absl::Status& status);
// Prints what is wrong with the typed options, and returns kExitUsage.
int FailUsage(const absl::Status& status);

}  // namespace neurontrace::cli
