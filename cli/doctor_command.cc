// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>

#include "cli/capture_view.h"
#include "cli/command.h"
#include "cli/doctor_agent.h"
#include "cli/doctor_aggregator.h"
#include "cli/doctor_finding.h"
#include "cli/doctor_host.h"
#include "cli/doctor_libraries.h"
#include "cli/doctor_workers.h"
#include "cli/record_programs.h"
#include "lib/base/address.h"
#include "lib/base/standard_streams.h"

namespace neurontrace::cli {
namespace {

constexpr char kProc[] = "/proc";

// Values of the options; an empty text means that `doctor` finds it itself.
struct DoctorOptions {
  std::string agent_socket;  // empty: the local agent's
  std::string tap;
  std::vector<std::string> programs;
};

// Moves `more` to the end of the findings.
void Append(std::vector<Finding>& findings, std::vector<Finding> more) {
  for (Finding& finding : more) findings.push_back(std::move(finding));
}

// Returns the name that agents of this machine report in their hello, or "".
std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

// Makes both calls. A failure of the second is no error: the first shows the state of the
// aggregator.
AggregatorAnswer Ask(Context& context) {
  AggregatorAnswer answer;
  const auto start = std::chrono::steady_clock::now();
  grpc::ClientContext call;
  SetDeadline(call, context);
  const grpc::Status status = context.stub().GetStatus(&call, {}, &answer.status);
  if (!status.ok()) answer.error = status.error_message();
  answer.took_ns = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
          .count());
  v1::ListWorkersRequest request;
  for (std::string& instance : InstancesOf(answer.status, HostName())) {
    request.add_instance_ids(std::move(instance));
  }
  // An empty request would list the workers of all instances.
  if (request.instance_ids_size() == 0) return answer;
  grpc::ClientContext workers_call;
  SetDeadline(workers_call, context);
  // The failure of this call removes the findings about workers; the previous call shows the state
  // of the aggregator.
  if (!context.stub().ListWorkers(&workers_call, request, &answer.workers).ok()) {
    answer.workers.Clear();
  }
  return answer;
}

// Runs all checks in the order in which data flows: agent, libraries, workers, machine, aggregator.
// A finding never ends the run. Returns the exit code of the worst one.
int RunDoctor(Context& context, const DoctorOptions& options) {
  SystemHostView host;
  std::vector<Finding> findings;
  const LocalAgent agent = FindLocalAgent(host, kProc);
  const std::string socket = options.agent_socket.empty() ? agent.socket : options.agent_socket;
  const bool has_devices = HasNeuronDevices(host);
  // Without devices, agent or option this is probably an operator's machine, which needs no agent.
  const bool is_expected = has_devices || agent.pid || !options.agent_socket.empty();
  findings.push_back(CheckAgentSocket(host, socket, is_expected));
  findings.push_back(CheckSpool(host, agent));
  const std::string tap =
      FindTap({.own_directory = OwnDirectory(), .tap = options.tap},
              [&host](const std::string& path) { return host.Examine(path).has_value(); });
  Append(findings, CheckTap(host, tap.empty() ? options.tap : tap, NEURONTRACE_VERSION));
  findings.push_back(
      CheckRuntime(host, RuntimePlaces(host.Environment("LD_LIBRARY_PATH")), has_devices));
  if (!agent.kineto_directory.empty()) findings.push_back(CheckKinetoDirectory(host, agent));
  Append(findings, CheckWorkers(host, kProc, socket, agent));
  Append(findings, CheckPreload(host, options.programs));
  Append(findings, CheckClocks(host));
  Append(findings, CheckLimits(host));
  if (const std::string problem = CheckPeerAddress(context.aggregator); !problem.empty()) {
    findings.push_back({"aggregator", Severity::kBroken, problem,
                        "set it with --aggregator HOST:PORT or NEURONTRACE_AGGREGATOR"});
  } else {
    const Finding transport = CheckTransport(context.aggregator, context.security);
    // Without usable security no call can succeed, and its error would only repeat this finding.
    if (transport.severity != Severity::kBroken) {
      Append(findings, CheckAggregator(context.aggregator, NEURONTRACE_VERSION, HostName(),
                                       [&context] { return Ask(context); }));
    }
    findings.push_back(transport);
  }
  Print("{}", context.json ? FormatFindingsJson(findings) : FormatFindings(findings));
  return ExitCodeOf(findings);
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand("doctor", "Check this machine's setup and suggest fixes");
  command
      ->add_option("--agent-socket", options->agent_socket,
                   "Socket that taps connect to (default: the running agent's)")
      ->envname("NEURONTRACE_AGENT_SOCKET");
  command->add_option("--tap", options->tap, "Tap library (default: the one beside this program)")
      ->envname("NEURONTRACE_TAP");
  command
      ->add_option("--program", options->programs,
                   "Program to check: whether libraries can be preloaded into it; may be repeated")
      ->check(CLI::ExistingFile)
      ->allow_extra_args(false);
  command->footer(
      "Examples:\n"
      "  neurontrace doctor\n"
      "  sudo neurontrace doctor --program /usr/bin/python3 --output json\n\n"
      "Checks the agent's socket and spool, the tap, libnrt.so.1, the workers of this machine, "
      "clocks,\n"
      "limits and the aggregator, and changes nothing. As root it sees all users' processes.\n\n"
      "Exit codes: 0 no problems, 1 something is broken, 3 there are only warnings.");
  command->callback([&context, &run, options] {
    run = [&context, options] { return RunDoctor(context, *options); };
  });
}

}  // namespace neurontrace::cli
