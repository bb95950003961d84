// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "base/standard_streams.h"
#include "cli/capture_view.h"
#include "cli/command.h"
#include "cli/shared_options.h"
#include "cli/text.h"
#include "cli/worker_ranks.h"
#include "trace/ids.h"

namespace neurontrace::cli {
namespace {

struct WorkersOptions {
  std::vector<std::string> instances;
  std::string job;
  bool facts = false;
};

// The best known rank of each core, and the best evidence behind them.
std::set<int64_t> Ranks(const v1::WorkerInventory& worker, std::string& evidence) {
  std::set<int64_t> gids;
  for (const v1::CoreInventory& core : worker.cores()) {
    if (core.rank_evidence().empty()) continue;
    if (evidence.empty()) evidence = core.rank_evidence(0).detail();
    gids.insert(core.rank_evidence(0).worker_gid());
  }
  return gids;
}

// What it is doing, and what keeps it from recording.
std::string State(const v1::WorkerInventory& worker) {
  std::string text = WorkerStateName(worker.state());
  const auto id = CaptureId::FromBytes(worker.tap_capture_id());
  if (!worker.tap_capture_id().empty() && id.ok()) text += " " + id->ToString();
  return text;
}

// "slurm=4711 pod=llama-0": what --job and its companions find it by.
std::string Facts(const v1::WorkerInventory& worker) {
  std::string text;
  for (const v1::KeyValue& fact : worker.job_facts()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", fact.key(), fact.value());
  }
  return text.empty() ? "-" : text;
}

// The command line without the directory of its program.
std::string ShortCommand(const std::string& command) {
  const size_t end = std::min(command.find(' '), command.size());
  const size_t slash = command.rfind('/', end);
  return command.substr(slash == std::string::npos ? 0 : slash + 1, 40);
}

std::string FormatWorkers(const v1::ListWorkersReply& reply, bool with_facts) {
  std::vector<std::string> header = {"INSTANCE", "PID", "STATE", "CORES", "WORKER GIDS"};
  for (const char* name : {"EVIDENCE", "JOB", "COMMAND"}) {
    if (!with_facts) header.push_back(name);
  }
  if (with_facts) header.push_back("FACTS");
  std::vector<std::vector<std::string>> rows;
  std::string notes;
  for (const v1::WorkerInventory& worker : reply.workers()) {
    std::string evidence;
    const std::set<int64_t> gids = Ranks(worker, evidence);
    rows.push_back({worker.identity().instance_id(), std::to_string(worker.identity().pid()),
                    State(worker), std::to_string(worker.cores_size()),
                    gids.empty() ? "unknown" : FormatRanks(gids)});
    if (with_facts) {
      rows.back().push_back(Facts(worker));
    } else {
      rows.back().insert(rows.back().end(), {evidence.empty() ? "-" : evidence,
                                             worker.job().empty() ? "-" : worker.job(),
                                             ShortCommand(worker.command())});
    }
    const std::string who =
        fmt::format("{} pid {}", worker.identity().instance_id(), worker.identity().pid());
    if (!worker.detail().empty()) {
      notes += fmt::format("{}: {}: {}\n", who, WorkerStateName(worker.state()), worker.detail());
    }
    for (const std::string& warning : worker.warnings()) {
      notes += fmt::format("warning: {}: {}\n", who, warning);
    }
  }
  return FormatTable(header, rows) + notes;
}

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
  if (context.json) {
    // A raw id is nothing that JSON shows as people know it.
    for (v1::WorkerInventory& worker : *reply.mutable_workers()) worker.clear_tap_capture_id();
    Print("{}", FormatJson(reply));
    return kExitDone;
  }
  if (reply.workers().empty() && !(options.job.empty() && options.instances.empty())) {
    Print("No worker{}{}: neurontrace workers --facts lists all, with what they are found by.\n",
          options.job.empty() ? "" : " of job " + options.job,
          options.instances.empty() ? "" : " on these instances");
    return kExitDone;
  }
  if (reply.workers().empty()) {
    Print(
        "No worker. A worker shows up here once its process runs with the tap loaded "
        "(LD_PRELOAD=libneurontrace_tap.so) on a node with an agent.\n");
    return kExitDone;
  }
  Print("{}", FormatWorkers(reply, options.facts));
  return kExitDone;
}

}  // namespace

void AddWorkersCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<WorkersOptions>();
  CLI::App* command =
      app.add_subcommand("workers", "Processes that can be traced, with their global ranks");
  AddInstances(*command, options->instances);
  command->add_option("--job", options->job, "Only workers of this job")
      ->check(NotEmpty("leave it out for workers of every job"));
  command->add_flag("--facts", options->facts,
                    "What --job, --namespace, --pod and --label find each worker by");
  command->footer(
      "Examples:\n  neurontrace workers --instance i-0f207fb2a99bd2d08\n"
      "  neurontrace workers --job llama-70b --facts");
  command->callback([&context, &run, options] {
    run = [&context, options] { return ListWorkers(context, *options); };
  });
}

}  // namespace neurontrace::cli
