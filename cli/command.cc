// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string_view>

#include "base/build_facts.h"
#include "base/status.h"
#include "cli/help_formatter.h"
#include "trace/agent_info.h"
#include "trace/chunk_format.h"

namespace neurontrace::cli {
namespace {

constexpr char kFooter[] =
    "Examples:\n"
    "  neurontrace status\n"
    "  neurontrace capture --duration 30s --job llama-70b -o trace.pftrace\n"
    "  neurontrace captures show 01JD\n"
    "  neurontrace export 01JD --format json -o trace.json\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 finished but incomplete.\n"
    "Options come from the command line, else from the environment, else from\n"
    "~/.config/neurontrace/config, else from /etc/neurontrace/config: see `neurontrace config`.";

// What the shells' scripts call.
constexpr char kCompleteWord[] = "__complete";

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

int FailUsage(const absl::Status& status) {
  Fail(status);
  return kExitUsage;
}

int RunCommandLine(int argc, const char* const* argv, Context& context) {
  CLI::App app("Collects Neuron Runtime traces from a whole cluster into one timeline.",
               "neurontrace");
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(kFooter);
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", BuildFacts("neurontrace", {{"protocol", kProtocolVersion},
                                                               {"chunk", chunk_format::kVersion}}));

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
  AddFlightRecorderCommand(app, context, run);
  AddTriggersCommand(app, context, run);
  AddValidateCommand(app, context, run);
  AddRecordCommand(app, context, run);
  AddDoctorCommand(app, context, run);
  AddConfigCommand(app, context, run);
  AddCompletionCommand(app, run);
  // The parser would make two words of "[a,b]": what is somebody else's command it does not see.
  const char* const* const end = argv + argc;
  const char* const* const dashes = std::find(argv + 1, end, std::string_view("--"));
  context.words.assign(argv + 1, dashes);
  context.command_words.assign(std::min(dashes + 1, end), end);
  // Its defaults are in the help, so before the parser is asked for that.
  const absl::Status configured = ApplyConfig(app, context.config_places, context.config_origins);
  if (!context.words.empty() && context.words[0] == kCompleteWord) {
    return PrintCompletions(app, context, std::vector<std::string>(argv + 2, end));
  }
  try {
    app.parse(static_cast<int>(dashes - argv), argv);
  } catch (const CLI::ParseError& error) {  // CLI11 has no other way of saying it
    return app.exit(error) == 0 ? kExitDone : kExitUsage;
  }
  if (!configured.ok()) {
    Fail(configured);
    return kExitUsage;
  }
  if (dashes != end && !app.got_subcommand("record")) {
    Fail(InvalidArgument("nothing stands behind --, but of `neurontrace record`"));
    return kExitUsage;
  }
  context.json = output == "json";
  context.quiet = quiet;
  context.progress = !quiet && isatty(STDERR_FILENO) == 1;
  return run();
}

}  // namespace neurontrace::cli
