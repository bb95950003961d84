// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "neurontrace/v1/operator_service.grpc.pb.h"

namespace neurontrace::cli {

// What scripts may rely on; docs/operations.md lists them for users.
enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitIncomplete = 3,  // finished, but not everything that was asked for is there
};

// What every command has at hand. Lives in main; one thread.
struct Context {
  std::string aggregator;  // HOST:PORT
  bool json = false;       // --output json
  bool progress = false;   // stderr is a terminal, and nobody asked for quiet
  uint32_t connect_timeout_ms = 5'000;

  // The aggregator's service; made on first use. Unit tests put a fake here.
  std::function<std::unique_ptr<v1::OperatorService::StubInterface>(const Context&)> make_stub;
  v1::OperatorService::StubInterface& stub();

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
void AddCompletionCommand(CLI::App& app, Run& run);

// The whole command line; returns the exit code. Separate from main so that tests can call it.
int RunCommandLine(int argc, const char* const* argv, Context& context);

// Says what failed on stderr, with the way out where there is one, and returns kExitFailed.
int Fail(const Context& context, const grpc::Status& status);
int Fail(const absl::Status& status);

}  // namespace neurontrace::cli
