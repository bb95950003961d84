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

// What every command has at hand. Lives in main; one thread.
struct Context {
  std::string aggregator;  // HOST:PORT
  ChannelSecurity security;
  bool json = false;      // --output json
  bool quiet = false;     // nothing on stderr but what went wrong
  bool progress = false;  // stderr is a terminal, and nobody asked for quiet
  size_t columns = 0;     // of the terminal that standard output is; 0: it is none
  uint32_t connect_timeout_ms = 5'000;
  // So long an export that breaks off asks again; unit tests have it shorter.
  uint32_t export_retry_ms = 60'000;
  std::FILE* results = stdout;             // where an export says what it wrote
  std::vector<ConfigPlace> config_places;  // files of options, later ones override
  ConfigOrigins config_origins;            // which of their lines count
  std::vector<std::string> words;          // typed behind the program's name, up to a --
  std::vector<std::string> command_words;  // behind the --: what `record` runs

  // The aggregator's service; made on first use. Unit tests put a fake here.
  std::function<std::unique_ptr<v1::OperatorService::StubInterface>(const Context&)> make_stub;
  v1::OperatorService::StubInterface& stub();
  // Null: nobody has asked for it yet.
  v1::OperatorService::StubInterface* made_stub() const { return stub_.get(); }

 private:
  std::unique_ptr<v1::OperatorService::StubInterface> stub_;
};

// Every command adds itself to the parser and leaves in `run` what is to happen when it was chosen.
using Run = std::function<int()>;
void AddStatusCommand(CLI::App& app, Context& context, Run& run);
void AddWorkersCommand(CLI::App& app, Context& context, Run& run);
void AddClocksCommand(CLI::App& app, Context& context, Run& run);
void AddCaptureCommand(CLI::App& app, Context& context, Run& run);
void AddCapturesCommand(CLI::App& app, Context& context, Run& run);
void AddExportCommand(CLI::App& app, Context& context, Run& run);
void AddFlightRecorderCommand(CLI::App& app, Context& context, Run& run);
void AddTriggersCommand(CLI::App& app, Context& context, Run& run);
void AddValidateCommand(CLI::App& app, Context& context, Run& run);
void AddRecordCommand(CLI::App& app, Context& context, Run& run);
void AddDoctorCommand(CLI::App& app, Context& context, Run& run);
void AddConfigCommand(CLI::App& app, Context& context, Run& run);
void AddCompletionCommand(CLI::App& app, Run& run);

// Completions of `words`, for the scripts of AddCompletionCommand.
int PrintCompletions(const CLI::App& app, const std::vector<std::string>& words);

// The whole command line; returns the exit code. Separate from main so that tests can call it.
int RunCommandLine(int argc, const char* const* argv, Context& context);

// Says what failed on stderr, with the way out where there is one, and returns kExitFailed.
int Fail(const Context& context, const grpc::Status& status);
int Fail(const absl::Status& status);
// The same, of what was typed; returns kExitUsage.
int FailUsage(const absl::Status& status);

}  // namespace neurontrace::cli
