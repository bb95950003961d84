// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/record_programs.h"
#include "cli/traced_command.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"
#include "lib/base/unique_fd.h"
#include "lib/trace/framework_trace.h"

namespace neurontrace::cli {
namespace {

constexpr char kUsualSocket[] = "/run/neurontrace/agent.sock";

// Values of the options.
struct RunArguments {
  std::vector<std::string> words;  // in the command's place, without the --
  ProgramPlaces places;
  std::string agent_socket;
  std::string kineto_directory;
  std::string xla_port;  // empty: the variable is not set
};

// Returns the absolute path without symbolic links, as the command may change its directory; the
// path itself if that fails.
std::string AbsolutePath(const std::string& path) {
  char* const absolute = realpath(path.c_str(), nullptr);
  const std::string result = absolute == nullptr ? path : absolute;
  free(absolute);
  return result;
}

// Returns a TCP port that nobody uses at the moment. Fails with INTERNAL.
absl::StatusOr<uint16_t> FindFreePort() {
  // As XLA's server: on all addresses of both families, where there are two.
  UniqueFd fd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage address = {};
  address.ss_family = AF_INET6;
  socklen_t size = sizeof(sockaddr_in6);
  if (!fd.valid()) {
    fd = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    address.ss_family = AF_INET;
    size = sizeof(sockaddr_in);
  }
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!fd.valid() || bind(fd.get(), generic, size) != 0 ||
      getsockname(fd.get(), generic, &size) != 0) {
    return Internal("cannot find a free port for --xla-port auto: {}", strerror(errno));
  }
  // The port is at the same place in both.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

// Returns the port for the command's XLA server. Fails with INVALID_ARGUMENT, or as FindFreePort.
absl::StatusOr<uint16_t> XlaPort(const std::string& text) {
  if (text == "auto") return FindFreePort();
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) {
    return InvalidArgument("--xla-port {} is neither a port nor auto", text);
  }
  return port;
}

// Returns the variables that make the command's processes workers of this machine's agent. `tap` is
// an absolute path. Variables of the user's other tools stay: the tap precedes other preloaded
// libraries, and a different injection library of NVTX is not replaced.
std::vector<TracedCommand::Variable> WorkerVariables(const RunArguments& arguments,
                                                     const std::string& tap) {
  std::vector<TracedCommand::Variable> variables = {
      {"LD_PRELOAD", WithPreload(tap, EnvironmentVariable("LD_PRELOAD"))}};
  if (!arguments.agent_socket.empty()) {
    variables.push_back({"NEURONTRACE_AGENT_SOCKET", arguments.agent_socket});
  }
  const std::string annotations = FindAnnotationLibrary(tap, FileExists);
  if (EnvironmentVariable("NVTX_INJECTION64_PATH").empty() && !annotations.empty()) {
    variables.push_back({"NVTX_INJECTION64_PATH", annotations});
  }
  if (!arguments.kineto_directory.empty()) {
    variables.push_back({"KINETO_USE_DAEMON", "1"});
    variables.push_back({"KINETO_IPC_SOCKET_DIR", AbsolutePath(arguments.kineto_directory)});
  }
  return variables;
}

// Prints a warning if no agent has made its socket yet. The command runs all the same: taps try
// again every few seconds.
void WarnWithoutAgent(const Context& context, const RunArguments& arguments) {
  std::string socket = arguments.agent_socket;
  if (socket.empty()) socket = EnvironmentVariable("NEURONTRACE_AGENT_SOCKET");
  if (socket.empty()) socket = kUsualSocket;
  if (context.quiet || FileExists(socket)) return;
  Print(stderr,
        "neurontrace: there is no agent at {}; nothing is recorded until one starts there. Set "
        "another socket with --agent-socket PATH\n",
        socket);
}

// Becomes the command. Returns an exit code only if it cannot be run.
int RunWorkers(const Context& context, const RunArguments& arguments) {
  if (!arguments.words.empty()) {
    return FailUsage(InvalidArgument("write -- before the command: neurontrace run -- {} …",
                                     arguments.words.front()));
  }
  if (context.command_line.empty()) {
    return FailUsage(InvalidArgument("no command given; use neurontrace run -- COMMAND …"));
  }
  ProgramPlaces places = arguments.places;
  places.own_directory = OwnDirectory();
  const std::string tap = FindTap(places, FileExists);
  if (tap.empty()) {
    Fail(NotFound("there is no {}; set the tap library with --tap FILE or NEURONTRACE_TAP",
                  places.tap.empty() ? "libneurontrace_tap.so beside this program or in its ../lib"
                                     : places.tap));
    return kExitRecordFailed;
  }
  const std::string program = FindProgram(context.command_line[0], EnvironmentVariable("PATH"));
  if (program.empty() || !FileExists(program)) {
    Fail(NotFound("{}: command not found", context.command_line[0]));
    return kExitCommandMissing;
  }
  std::vector<TracedCommand::Variable> variables = WorkerVariables(arguments, AbsolutePath(tap));
  if (!arguments.xla_port.empty()) {
    const auto port = XlaPort(arguments.xla_port);
    if (absl::IsInvalidArgument(port.status())) return FailUsage(port.status());
    if (!port.ok()) {
      Fail(port.status());
      return kExitRecordFailed;
    }
    variables.push_back({kXlaPortVariable, std::to_string(*port)});
  }
  WarnWithoutAgent(context, arguments);
  for (const TracedCommand::Variable& variable : variables) {
    setenv(variable.name.c_str(), variable.value.c_str(), 1);
  }
  std::vector<char*> argv;
  for (const std::string& word : context.command_line) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  const int error = errno;
  Fail(FailedPrecondition("{} cannot be run: {}", program, strerror(error)));
  return kExitCannotRun;
}

}  // namespace

void AddRunCommand(CLI::App& app, Context& context, Run& run) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command =
      app.add_subcommand("run", "Run a command whose processes this machine's agent can record");
  command->add_option("COMMAND", arguments->words, "Command to run, after --, with its arguments");
  command
      ->add_option("--tap", arguments->places.tap,
                   "Tap library (default: beside this program or in its ../lib)")
      ->envname("NEURONTRACE_TAP");
  command->add_option("--agent-socket", arguments->agent_socket,
                      "Socket of the agent (default: NEURONTRACE_AGENT_SOCKET, else "
                      "/run/neurontrace/agent.sock)");
  command
      ->add_option("--kineto-dir", arguments->kineto_directory,
                   "Directory of the agent's socket for PyTorch's profiler; sets "
                   "KINETO_USE_DAEMON and KINETO_IPC_SOCKET_DIR")
      ->envname("NEURONTRACE_KINETO_DIR")
      ->check(CLI::ExistingDirectory);
  command->add_option("--xla-port", arguments->xla_port,
                      "Set NEURONTRACE_XLA_PORT for a jax or torch_xla program, which starts its "
                      "profiler's server there; auto: a port that is free now. For a command that "
                      "is one process, as each needs a port of its own");
  command->footer(
      "Examples:\n"
      "  neurontrace run -- python train.py\n"
      "  srun neurontrace run -- torchrun train.py\n"
      "  srun neurontrace run --xla-port auto -- python train_jax.py\n\n"
      "Sets LD_PRELOAD to the tap, in front of present libraries, and NVTX_INJECTION64_PATH to\n"
      "libneurontrace_annotate.so if it is beside the tap and the variable is not set. Then this\n"
      "process becomes the command. It starts no daemons and no capture: see neurontrace "
      "record.\n\n"
      "Exit codes: the command's own; 127 command not found, 126 it cannot be run, 125 there is\n"
      "no tap, so it was not run; 2 wrong usage.");
  command->callback([&context, &run, arguments] {
    run = [&context, arguments] { return RunWorkers(context, *arguments); };
  });
}

}  // namespace neurontrace::cli
