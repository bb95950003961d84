// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <set>
#include <string_view>

#include "cli/help_formatter.h"
#include "cli/terminal_region.h"
#include "lib/base/address.h"
#include "lib/base/build_facts.h"
#include "lib/base/clean_text.h"
#include "lib/base/quantity.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"
#include "lib/trace/agent_info.h"
#include "lib/trace/chunk_format.h"
#include "lib/wire/effective_options_check.h"

namespace neurontrace::cli {
namespace {

constexpr char kFooter[] =
    "Examples:\n"
    "  neurontrace status\n"
    "  neurontrace capture --duration 30s --job llama-70b -o trace.pftrace\n"
    "  neurontrace captures show 01JD\n"
    "  neurontrace export 01JD --format json -o trace.json\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 finished but incomplete.\n"
    "Options are read from the command line, then the environment, then\n"
    "~/.config/neurontrace/config, then /etc/neurontrace/config: see `neurontrace config`.";

// The deadline of FailureOf's second call, which looks for the reason of a failure.
constexpr std::chrono::seconds kReasonPatience{2};

// The hidden command that the shells' completion scripts call.
constexpr char kCompleteWord[] = "__complete";

// Adds the options that precede or follow every command. `output` and `quiet` must outlive the
// parsing.
void AddGlobalOptions(CLI::App& app, Context& context, std::string& output, bool& quiet) {
  app.add_option("--aggregator", context.aggregator, "Address of the aggregator, HOST:PORT")
      ->envname("NEURONTRACE_AGGREGATOR")
      ->capture_default_str();
  app.add_option("--output", output, "How to print results")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  app.add_flag("-q,--quiet", quiet, "Print no progress on stderr");
  app.add_option("--connect-timeout-ms", context.connect_timeout_ms,
                 "How long to wait for the aggregator, in ms")
      ->check(CheckWholeNumber)
      ->capture_default_str();
  AddSecurityOptions(app, context.security, ChannelSide::kClient);
}

// Commands that connect to no aggregator, or to one of their own; `doctor` reports a wrong address
// among other findings.
constexpr const char* kLocalCommands[] = {"record", "run",        "validate",
                                          "config", "completion", "doctor"};

// Options that name files of this machine, whose names may be any bytes and are sent to no other
// program.
std::set<std::string_view> PathOptions() {
  return {"out",     "tls-ca",    "tls-cert",      "tls-key",      "programs", "tap",       "FILE",
          "COMMAND", "directory", "framework-dir", "agent-socket", "program",  "kineto-dir"};
}

// Cleans each line. An error message repeats typed text, and an escape sequence in it must not
// control the terminal.
std::string Printable(std::string_view text) {
  std::string clean;
  for (size_t end = 0;; text.remove_prefix(end + 1)) {
    end = text.find('\n');
    clean += CleanText(text.substr(0, end), std::numeric_limits<size_t>::max());
    if (end == std::string_view::npos) return clean;
    clean += '\n';
  }
}

// Returns whether the chosen command needs no address of an aggregator.
bool IsLocal(const CLI::App& app) {
  return std::any_of(std::begin(kLocalCommands), std::end(kLocalCommands),
                     [&](const char* name) { return app.got_subcommand(name); });
}

// Returns a remedy for a failed connection. gRPC reports every failure before the first byte as
// UNAVAILABLE, so only the texts of OpenSSL and gRPC in its message identify the cause. Texts that
// match none get general advice.
std::string DescribeRemedy(const Context& context, std::string_view message) {
  const auto has_text = [&](std::string_view words) {
    return message.find(words) != std::string_view::npos;
  };
  // A wrong name is also a failed verification, so it is tested first.
  if (has_text("Hostname Verification")) {
    return "The aggregator's certificate is issued for a different name; pass the name in it with "
           "--tls-server-name.";
  }
  if (has_text("certificate verify failed")) {
    return "The aggregator's certificate has expired, or is not signed by the certificate "
           "authority in --tls-ca.";
  }
  if (has_text("certificate required") || has_text("alert")) {
    return "The aggregator rejected the certificate; pass a valid one signed by its CA with "
           "--tls-cert and --tls-key.";
  }
  if (has_text("WRONG_VERSION_NUMBER") || has_text("wrong version number")) {
    return "The aggregator does not use TLS; omit --tls-ca.";
  }
  // With TLS 1.3 a server that refuses the client reports it after the client's handshake is over.
  const bool hung_up =
      has_text("Socket closed") || has_text("Endpoint read failed") || has_text("reset");
  if (hung_up && !context.security.has_tls()) {
    return "It may require TLS; pass --tls-ca, --tls-cert and --tls-key.";
  }
  if (hung_up && context.security.has_tls()) {
    return "It closes the connection because the certificate is missing or not accepted; pass one "
           "signed by its CA with --tls-cert and --tls-key.";
  }
  return "Check that neurontrace-aggregator runs there, or set another address with --aggregator "
         "HOST:PORT or NEURONTRACE_AGGREGATOR.";
}

}  // namespace

v1::OperatorService::StubInterface& Context::stub() {
  if (stub_ == nullptr) stub_ = make_stub(*this);
  return *stub_;
}

namespace {

// Asks for what a failed call does not tell. One that waits for a connection ends with
// DEADLINE_EXCEEDED both without a connection and if the answer takes too long; a second one, which
// does not wait, fails with UNAVAILABLE and the reason if there is no connection.
grpc::Status AskAgain(const Context& context, const grpc::Status& status) {
  if (context.made_stub() == nullptr) return status;
  grpc::ClientContext call;
  call.set_deadline(std::chrono::system_clock::now() + kReasonPatience);
  v1::GetStatusReply reply;
  return context.made_stub()->GetStatus(&call, {}, &reply);
}

int FailWithoutConnection(const Context& context, const grpc::Status& status) {
  const std::string& reason = status.error_message();
  Print(stderr,
        "neurontrace: no answer from the aggregator at {}: {}\n"
        "  {}\n",
        context.aggregator, reason, DescribeRemedy(context, reason));
  return kExitFailed;
}

int FailAfterDeadline(const Context& context, const grpc::Status& status) {
  const grpc::Status again = AskAgain(context, status);
  if (again.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return FailWithoutConnection(context, again);
  }
  const bool is_slow = again.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  Print(stderr, "neurontrace: the aggregator at {} {}: {}\n  {}\n", context.aggregator,
        is_slow ? "did not answer in time" : "runs and is too busy for this call",
        Printable(status.error_message()),
        is_slow ? "It is busy, or packets to it are lost. Try again, wait longer with "
                  "--connect-timeout-ms, or look for the cause with neurontrace doctor."
                : "Try again, or wait longer with --connect-timeout-ms.");
  return kExitFailed;
}

}  // namespace

int Fail(const Context& context, const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return FailWithoutConnection(context, status);
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return FailAfterDeadline(context, status);
  }
  if (status.error_message().empty()) {
    Print(stderr, "neurontrace: the call failed with gRPC status {} and no message\n",
          static_cast<int>(status.error_code()));
  } else {
    Print(stderr, "neurontrace: {}\n", Printable(status.error_message()));
  }
  return kExitFailed;
}

int Fail(const absl::Status& status) {
  Print(stderr, "neurontrace: {}\n", Printable(std::string(status.message())));
  return kExitFailed;
}

int FailUsage(const absl::Status& status) {
  Fail(status);
  return kExitUsage;
}

namespace {

// Returns the first example in the help of the command as "; for example COMMAND", or "".
std::string ExampleOf(const CLI::App& command) {
  constexpr std::string_view kBegin = "\n  neurontrace ";
  const std::string footer = command.get_footer();
  const size_t at = footer.find(kBegin);
  if (at == std::string::npos) return "";
  const size_t begin = at + 3;
  const std::string line = footer.substr(begin, footer.find('\n', begin) - begin);
  // What follows several spaces is a comment.
  return fmt::format("; for example {}", line.substr(0, line.find("  ")));
}

// Fails because of what a command lacks: a subcommand, or an argument.
int FailIncomplete(const CLI::App& app, const std::vector<std::string>& unexpected,
                   const CLI::ParseError& error) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  const std::string path = PathOf(*command);
  const std::string name = path.empty() ? "neurontrace" : "neurontrace " + path;
  if (!unexpected.empty() && !unexpected.front().starts_with('-')) {
    return FailUsage(InvalidArgument("unknown command '{}{}{}'; {} --help lists the commands", path,
                                     path.empty() ? "" : " ", unexpected.front(), name));
  }
  if (command->get_require_subcommand_min() == 0) {
    return FailUsage(InvalidArgument("{}: {}{}", name, error.what(), ExampleOf(*command)));
  }
  std::vector<std::string> names;
  for (const CLI::App* const child :
       command->get_subcommands([](const CLI::App*) { return true; })) {
    if (!child->get_name().empty()) names.push_back(child->get_name());
  }
  return FailUsage(InvalidArgument("{} needs a subcommand: {}{}", name, fmt::join(names, ", "),
                                   ExampleOf(*command)));
}

// Prints a parser's error and returns the exit code. Help and versions are exceptions too, and end
// with kExitDone. CLI11's own message omits a word that is not a command and reverses unexpected
// ones, so those two cases have messages here.
int FailParse(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unexpected = app.remaining(true);
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (code == CLI::ExitCodes::RequiredError) return FailIncomplete(app, unexpected, error);
  if (code == CLI::ExitCodes::ExtrasError && !unexpected.empty()) {
    Print(stderr, "neurontrace: unexpected argument: {}\nRun with --help for more information.\n",
          fmt::join(unexpected, " "));
    return kExitUsage;
  }
  return app.exit(error) == 0 ? kExitDone : kExitUsage;
}

// Adds every command, in the order of --help.
void AddCommands(CLI::App& app, Context& context, Run& run) {
  AddStatusCommand(app, context, run);
  AddWorkersCommand(app, context, run);
  AddClocksCommand(app, context, run);
  AddCaptureCommand(app, context, run);
  AddCapturesCommand(app, context, run);
  AddExportCommand(app, context, run);
  AddFlightRecorderCommand(app, context, run);
  AddWatchCommand(app, context, run);
  AddTriggersCommand(app, context, run);
  AddWhyCommand(app, context, run);
  AddStacksCommand(app, context, run);
  AddArtifactsCommand(app, context, run);
  AddViewCommand(app, context, run);
  AddValidateCommand(app, context, run);
  AddRecordCommand(app, context, run);
  AddRunCommand(app, context, run);
  AddDoctorCommand(app, context, run);
  AddConfigCommand(app, context, run);
  AddCompletionCommand(app, run);
}

// Parses the command line and runs the command. The order matters: files of options before parsing,
// checks of values after it, and the command last.
int ParseAndRun(int argc, const char* const* argv, Context& context) {
  CLI::App app("Collects Neuron Runtime traces from a whole cluster into one timeline.",
               "neurontrace");
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(kFooter);
  app.require_subcommand(1);
  app.fallthrough();
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    return Printable(CLI::FailureMessage::simple(failed, error));
  });
  app.set_version_flag("--version", BuildFacts("neurontrace", {{"protocol", kProtocolVersion},
                                                               {"chunk", chunk_format::kVersion}}));

  std::string output = "table";
  bool quiet = false;
  AddGlobalOptions(app, context, output, quiet);
  Run run;
  AddCommands(app, context, run);
  // Words after -- are the command of another program. They are removed before parsing because the
  // parser would split "[a,b]" into two words.
  const char* const* const end = argv + argc;
  const char* const* const dashes = std::find(argv + 1, end, std::string_view("--"));
  context.words.assign(argv + 1, dashes);
  context.command_line.assign(std::min(dashes + 1, end), end);
  // Files become defaults before parsing because help shows defaults. Their errors are reported
  // after it, so that --help works in any case.
  const absl::Status configured = ApplyConfig(app, context.config_places, context.config_origins);
  if (!context.words.empty() && context.words[0] == kCompleteWord) {
    return PrintCompletions(app, std::vector<std::string>(argv + 2, end));
  }
  try {
    app.parse(static_cast<int>(dashes - argv), argv);
    // CLI11 reports errors only by exceptions.
  } catch (const CLI::ParseError& error) {
    return FailParse(app, error);
  }
  if (!configured.ok()) return FailUsage(configured);
  if (dashes != end && !app.got_subcommand("record") && !app.got_subcommand("run")) {
    return FailUsage(
        InvalidArgument("only `neurontrace record` and `run` accept a command after --"));
  }
  if (const absl::Status texts = CheckEffectiveOptions(app, PathOptions()); !texts.ok()) {
    return FailUsage(texts);
  }
  if (!IsLocal(app)) {
    // Local commands must work even if the environment has a wrong address.
    if (const std::string problem = CheckPeerAddress(context.aggregator); !problem.empty()) {
      return FailUsage(InvalidArgument("--aggregator {}", problem));
    }
    const absl::Status secure =
        CheckSecurity(context.security, context.aggregator, ChannelSide::kClient);
    if (!secure.ok()) return FailUsage(secure);
  }
  context.json = output == "json";
  context.quiet = quiet;
  context.progress = !quiet && isatty(STDERR_FILENO) == 1;
  context.columns = ColumnsOfStdout();
  return run();
}

}  // namespace

int RunCommandLine(int argc, const char* const* argv, Context& context) {
  return ExitCodeAfterOutput("neurontrace", ParseAndRun(argc, argv, context));
}

}  // namespace neurontrace::cli
