// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/capture_view.h"
#include "cli/command.h"
#include "cli/text.h"

namespace neurontrace::cli {
namespace {

struct WorkersOptions {
  std::vector<std::string> instances;
  std::string job;
};

// "0-3" for gids 0 to 3 of cores 0 to 3, with the best evidence behind them.
std::string Ranks(const v1::WorkerInventory& worker, std::string& evidence) {
  std::string text;
  int64_t first = -1, last = -1;
  const auto flush = [&] {
    if (first < 0) return;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (last > first) text += fmt::format("-{}", last);
  };
  for (const v1::CoreInventory& core : worker.cores()) {
    if (core.rank_evidence().empty()) continue;
    const v1::RankEvidence& best = core.rank_evidence(0);
    if (evidence.empty()) evidence = best.detail();
    if (first >= 0 && best.worker_gid() == last + 1) {
      last = best.worker_gid();
      continue;
    }
    flush();
    first = last = best.worker_gid();
  }
  flush();
  return text.empty() ? "unknown" : text;
}

// The command line without the directory of its program.
std::string ShortCommand(const std::string& command) {
  const size_t end = std::min(command.find(' '), command.size());
  const size_t slash = command.rfind('/', end);
  return command.substr(slash == std::string::npos ? 0 : slash + 1, 40);
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
    fmt::print("{}", FormatJson(reply));
    return kExitDone;
  }
  if (reply.workers().empty()) {
    fmt::print(
        "No worker. A worker shows up here once its process runs with the tap loaded "
        "(LD_PRELOAD=libneurontrace_tap.so) on a node with an agent.\n");
    return kExitDone;
  }
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> warnings;
  for (const v1::WorkerInventory& worker : reply.workers()) {
    std::string evidence;
    std::string ranks = Ranks(worker, evidence);
    rows.push_back({worker.identity().instance_id(), std::to_string(worker.identity().pid()),
                    WorkerStateName(worker.state()), std::to_string(worker.cores_size()),
                    std::move(ranks), evidence.empty() ? "-" : evidence,
                    worker.job().empty() ? "-" : worker.job(), ShortCommand(worker.command())});
    for (const std::string& warning : worker.warnings()) {
      warnings.push_back(fmt::format("{} pid {}: {}", worker.identity().instance_id(),
                                     worker.identity().pid(), warning));
    }
  }
  fmt::print("{}", FormatTable({"INSTANCE", "PID", "STATE", "CORES", "WORKER GIDS", "EVIDENCE",
                                "JOB", "COMMAND"},
                               rows));
  for (const std::string& warning : warnings) fmt::print("warning: {}\n", warning);
  return kExitDone;
}

}  // namespace

void AddWorkersCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<WorkersOptions>();
  CLI::App* command =
      app.add_subcommand("workers", "Processes that can be traced, with their global ranks");
  command
      ->add_option("--system-trace-filter-instance-id,--instance", options->instances,
                   "Only these instances (comma-separated)")
      ->allow_extra_args(false);
  command->add_option("--job", options->job, "Only workers of this job");
  command->footer("Example:\n  neurontrace workers --instance i-0f207fb2a99bd2d08");
  command->callback([&context, &run, options] {
    run = [&context, options] { return ListWorkers(context, *options); };
  });
}

}  // namespace neurontrace::cli
