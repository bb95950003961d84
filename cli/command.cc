// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace neurontrace::cli {
namespace {

constexpr char kFooter[] =
    "Examples:\n"
    "  neurontrace status\n"
    "  neurontrace capture --duration 30s --job llama-70b -o trace.pftrace\n"
    "  neurontrace captures show 01JD\n"
    "  neurontrace export 01JD --format json -o trace.json\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 finished but incomplete.";

void AddGlobalOptions(CLI::App& app, Context& context, std::string& output, bool& quiet) {
  app.add_option("--aggregator", context.aggregator, "Address of the aggregator, HOST:PORT")
      ->envname("NEURONTRACE_AGGREGATOR")
      ->capture_default_str();
  app.add_option("--output", output, "How to print results")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  app.add_flag("-q,--quiet", quiet, "No progress on stderr");
  app.add_option("--connect-timeout-ms", context.connect_timeout_ms,
                 "How long to wait for the aggregator, in ms")
      ->capture_default_str();
}

}  // namespace

v1::OperatorService::StubInterface& Context::stub() {
  if (stub_ == nullptr) stub_ = make_stub(*this);
  return *stub_;
}

int Fail(const Context& context, const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
      status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    fmt::print(
        stderr,
        "neurontrace: no answer from the aggregator at {}: {}\n"
        "  Is neurontrace-aggregator running there? Name another with --aggregator HOST:PORT "
        "or NEURONTRACE_AGGREGATOR.\n",
        context.aggregator, status.error_message());
  } else {
    fmt::print(stderr, "neurontrace: {}\n", status.error_message());
  }
  return kExitFailed;
}

int Fail(const absl::Status& status) {
  fmt::print(stderr, "neurontrace: {}\n", std::string(status.message()));
  return kExitFailed;
}

int RunCommandLine(int argc, const char* const* argv, Context& context) {
  CLI::App app("Collects Neuron Runtime traces from a whole cluster into one timeline.",
               "neurontrace");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", std::string("neurontrace ") + NEURONTRACE_VERSION);

  std::string output = "table";
  bool quiet = false;
  AddGlobalOptions(app, context, output, quiet);
  Run run;
  AddStatusCommand(app, context, run);
  AddWorkersCommand(app, context, run);
  AddClocksCommand(app, context, run);
  AddCaptureCommand(app, context, run);
  AddCapturesCommand(app, context, run);
  AddExportCommand(app, context, run);
  AddCompletionCommand(app, run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // CLI11 has no other way of saying it
    return app.exit(error) == 0 ? kExitDone : kExitUsage;
  }
  context.json = output == "json";
  context.progress = !quiet && isatty(STDERR_FILENO) == 1;
  return run();
}

}  // namespace neurontrace::cli
