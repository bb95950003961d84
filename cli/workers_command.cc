// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/capture_view.h"
#include "cli/command.h"
#include "cli/shared_options.h"
#include "cli/text.h"
#include "cli/worker_ranks.h"
#include "cli/workers_view.h"
#include "lib/base/standard_streams.h"

namespace neurontrace::cli {
namespace {

// Agents in a message about missing connections.
constexpr size_t kAgentsNamedMax = 4;

// Values of the options. The view is completed when the terminal's width is known.
struct WorkersOptions {
  std::vector<std::string> instances;
  std::string job;
  std::string state;
  WorkersView view;
};

// Returns an error message for a text that starts no state's name, or "". Without it a typing error
// would be answered with "no worker".
std::string CheckState(const std::string& state) {
  std::string names;
  for (int value = v1::WorkerState_MIN; value <= v1::WorkerState_MAX; ++value) {
    if (value == v1::WORKER_STATE_UNSPECIFIED || !v1::WorkerState_IsValid(value)) continue;
    const std::string name = WorkerStateName(static_cast<v1::WorkerState>(value));
    if (!state.empty() && name.starts_with(state)) return "";
    names += (names.empty() ? "" : ", ") + name;
  }
  return fmt::format("no state starts with '{}'; the states are {}", state, names);
}

// Removes workers in other states. The request has no such filter.
void FilterByState(const std::string& state, v1::ListWorkersReply& reply) {
  auto& workers = *reply.mutable_workers();
  workers.erase(std::remove_if(workers.begin(), workers.end(),
                               [&state](const v1::WorkerInventory& worker) {
                                 return !IsInState(worker, state);
                               }),
                workers.end());
}

// Returns a line that names agents without a connection, whose workers are not listed; "" if none
// is away. A failed call is reported in that line.
std::string DescribeAgentsAway(Context& context, const v1::ListWorkersRequest& request) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::ListAgentsReply reply;
  if (const grpc::Status asked = context.stub().ListAgents(&call, {}, &reply); !asked.ok()) {
    return fmt::format("It is unknown whether agents are disconnected: {}\n",
                       asked.error_message());
  }
  const auto& ids = request.instance_ids();
  size_t count = 0;
  std::string named;
  for (const v1::Agent& agent : reply.agents()) {
    const std::string& instance = agent.hello().instance_id();
    const bool is_asked_for =
        ids.empty() || std::find(ids.begin(), ids.end(), instance) != ids.end();
    if (agent.connected() || !is_asked_for || ++count > kAgentsNamedMax) continue;
    named += fmt::format("{}{} (last seen {})", named.empty() ? "" : ", ", instance,
                         FormatTime(agent.last_seen_realtime_ns()));
  }
  if (count == 0) return "";
  if (count > kAgentsNamedMax) named += ", …";
  return fmt::format("{} disconnected, so {} workers are not listed: {}\n",
                     FormatCounted(count, "agent is", "agents are"), count == 1 ? "its" : "their",
                     named);
}

// Lists the workers. Returns kExitIncomplete if ranks conflict, so that a script notices it.
int ListWorkers(Context& context, const WorkersOptions& options) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::ListWorkersRequest request;
  for (const auto& id : SplitList(options.instances)) request.add_instance_ids(id);
  request.set_job(options.job);
  v1::ListWorkersReply reply;
  if (const auto status = context.stub().ListWorkers(&call, request, &reply); !status.ok()) {
    return Fail(context, status);
  }
  if (!options.state.empty()) FilterByState(options.state, reply);
  const int code = HasConflict(reply.jobs()) ? kExitIncomplete : kExitDone;
  if (context.json) {
    // A raw id of bytes would be base64 in JSON, which nobody can compare with a capture's id.
    for (v1::WorkerInventory& worker : *reply.mutable_workers()) worker.clear_tap_capture_id();
    Print("{}", FormatJson(reply));
    return code;
  }
  const std::string away = DescribeAgentsAway(context, request);
  const bool is_narrowed =
      !options.job.empty() || !options.instances.empty() || !options.state.empty();
  if (reply.workers().empty() && is_narrowed) {
    Print(
        "No worker{}{}{}; neurontrace workers --facts lists every worker and the facts that select "
        "it.\n",
        options.job.empty() ? "" : " of job " + options.job,
        options.instances.empty() ? "" : " on these instances",
        options.state.empty() ? "" : " in state " + options.state);
  } else if (reply.workers().empty()) {
    Print("No worker.{}\n", away.empty()
                                ? " A worker appears once its process runs with the tap loaded "
                                  "(LD_PRELOAD=libneurontrace_tap.so) on a node with an agent."
                                : "");
  } else {
    WorkersView view = options.view;
    view.columns = context.columns;
    Print("{}", FormatWorkers(reply, view));
  }
  Print("{}", away);
  return code;
}

}  // namespace

void AddWorkersCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<WorkersOptions>();
  CLI::App* command =
      app.add_subcommand("workers", "List processes that can be traced, with their global ranks");
  AddInstances(*command, options->instances);
  command->add_option("--job", options->job, "Only workers of this job")
      ->check(NotEmpty("omit it for workers of every job"));
  command
      ->add_option("--state", options->state,
                   "Only workers in this state: ready, streaming, busy, no tap, …")
      ->check(CheckState);
  command->add_flag(
      "--facts", options->view.facts,
      "Show the facts by which --job, --namespace, --pod and --label select each worker");
  command->add_flag("--brief", options->view.brief,
                    "Show jobs and problems only, without a line per worker");
  command->add_flag("--wide", options->view.wide,
                    "Show whole command lines, rank evidence, and every warning of every worker");
  command->footer(
      "Examples:\n"
      "  neurontrace workers --instance i-0f207fb2a99bd2d08\n"
      "  neurontrace workers --job llama-70b --facts\n"
      "  neurontrace workers --brief\n"
      "Exit code: 3 if several cores of a job claim the same rank, or its workers disagree on the "
      "number of ranks.");
  command->callback([&context, &run, options] {
    run = [&context, options] { return ListWorkers(context, *options); };
  });
}

}  // namespace neurontrace::cli
