// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/capture_view.h"
#include "cli/command.h"
#include "cli/interrupt_watcher.h"
#include "cli/quantity.h"
#include "cli/shared_options.h"
#include "cli/text.h"
#include "cli/why_view.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"

namespace neurontrace::cli {
namespace {

// Between two questions whether the agents have answered. The aggregator ends the wait.
constexpr std::chrono::milliseconds kPollPeriod{500};

struct StacksOptions {
  std::string id;
  std::string job;
  std::vector<std::string> worker_gids;
  bool shows = false;
  bool json = false;
};

// Returns the request, or fails with INVALID_ARGUMENT for ranks that cannot be read.
absl::StatusOr<v1::CollectStacksRequest> RequestOf(const StacksOptions& options) {
  v1::CollectStacksRequest request;
  request.set_capture_id(options.id);
  request.set_job(options.job);
  for (const std::string& text : options.worker_gids) {
    ASSIGN_OR_RETURN(const std::vector<v1::GidRange> ranges, ParseGidRanges(text));
    for (const v1::GidRange& range : ranges) *request.add_worker_gids() = range;
  }
  return request;
}

grpc::Status GetStacks(Context& context, const std::string& id, v1::GetStacksReply& reply) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::CaptureReference request;
  request.set_capture_id(id);
  reply.Clear();
  return context.stub().GetStacks(&call, request, &reply);
}

// Returns 3 unless the stacks of every worker were taken.
int PrintStacks(const Context& context, const v1::GetStacksReply& reply) {
  if (context.json) {
    Print("{}", FormatJson(reply));
  } else {
    for (const v1::StacksReport& report : reply.stacks()) {
      Print("{}{}", FormatStacks(report, 0), FormatStackTree(report));
    }
  }
  bool all_taken = reply.stacks_size() > 0;
  for (const v1::StacksReport& report : reply.stacks()) {
    for (const v1::StacksMember& member : report.members()) {
      all_taken = all_taken && member.outcome() == v1::STACKS_OUTCOME_TAKEN;
    }
  }
  return all_taken ? kExitDone : kExitIncomplete;
}

// Asks the agents, and waits until each worker has an outcome.
int CollectStacks(Context& context, const v1::CollectStacksRequest& request) {
  v1::GetStacksReply asked;
  {
    grpc::ClientContext call;
    SetDeadline(call, context);
    const auto status = context.stub().CollectStacks(&call, request, &asked);
    if (!status.ok()) return Fail(context, status);
  }
  if (asked.stacks().empty()) return Fail(absl::InternalError("the aggregator sent no report"));
  const v1::StacksReport first = asked.stacks(0);
  Interrupt interrupt;
  const InterruptWatcher watcher([&interrupt](int) { interrupt.Set(); });
  for (;;) {
    v1::GetStacksReply reply;
    const auto status = GetStacks(context, first.capture_id(), reply);
    if (!status.ok()) return Fail(context, status);
    v1::GetStacksReply own;
    for (const v1::StacksReport& report : reply.stacks()) {
      if (report.asked_realtime_ns() == first.asked_realtime_ns()) *own.add_stacks() = report;
    }
    if (own.stacks().empty()) {
      return Fail(absl::NotFoundError("a later collection has replaced these stacks"));
    }
    if (own.stacks(0).pending() == 0 || interrupt.is_set()) return PrintStacks(context, own);
    interrupt.WaitFor(kPollPeriod);
  }
}

int RunStacks(Context& context, const StacksOptions& options) {
  if (options.json) context.json = true;
  if (!options.shows) {
    const auto request = RequestOf(options);
    if (!request.ok()) return FailUsage(request.status());
    return CollectStacks(context, *request);
  }
  if (options.id.empty()) {
    return FailUsage(InvalidArgument("--show needs the ID of a capture"));
  }
  v1::GetStacksReply reply;
  if (const auto status = GetStacks(context, options.id, reply); !status.ok()) {
    return Fail(context, status);
  }
  if (reply.stacks().empty()) return Fail(absl::NotFoundError("the capture has no stacks"));
  return PrintStacks(context, reply);
}

}  // namespace

void AddStacksCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<StacksOptions>();
  CLI::App* command = app.add_subcommand(
      "stacks", "Show what the threads of workers are doing now, and which ranks differ");
  command->add_option("ID", options->id,
                      "Capture that keeps the stacks of its workers (default: the running watch)");
  command->add_option("--job", options->job, "Only workers of this job")
      ->check(NotEmpty("omit it for all jobs"));
  command
      ->add_option("--worker-gid", options->worker_gids,
                   "Only workers that have a core with one of these global ranks: 0-7,64")
      ->check(NotEmpty("omit it for all ranks"));
  command->add_flag("--show", options->shows,
                    "Show the newest stacks of the capture; read nothing");
  command->add_flag("--json", options->json, "The same as --output json");
  command->footer(
      "Examples:\n"
      "  neurontrace stacks --worker-gid 12-14\n"
      "  neurontrace stacks 01JD --show\n\n"
      "Python stacks need --stacks-program of the agents. Workers are not stopped.\n"
      "Exit codes: 0 all taken; 1 failed; 2 wrong usage; 3 some were not taken.");
  command->callback([&context, &run, options] {
    run = [&context, options] { return RunStacks(context, *options); };
  });
}

}  // namespace neurontrace::cli
