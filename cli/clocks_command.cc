// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "cli/capture_view.h"
#include "cli/clocks_view.h"
#include "cli/command.h"
#include "cli/text.h"
#include "lib/base/standard_streams.h"

namespace neurontrace::cli {
namespace {

struct ClocksOptions {
  std::vector<std::string> instances;
  std::string capture_id;
};

int ListClocks(Context& context, const ClocksOptions& options) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::ListClocksRequest request;
  for (const auto& id : SplitList(options.instances)) request.add_instance_ids(id);
  request.set_capture_id(options.capture_id);
  v1::ListClocksReply reply;
  if (const auto status = context.stub().ListClocks(&call, request, &reply); !status.ok()) {
    return Fail(context, status);
  }
  if (context.json) {
    Print("{}", FormatJson(reply));
    return kExitDone;
  }
  if (reply.clocks().empty()) {
    Print("{}", options.capture_id.empty()
                    ? "No clock is known. An instance shows up here some seconds after its agent "
                      "has connected, unless it runs with --clock-probes off.\n"
                    : "No clock of this capture is known: no evidence of its time is stored.\n");
    return kExitDone;
  }
  Print("{}{}", FormatClocks(reply.clocks()), FormatDevicesAndOrder(reply));
  if (!options.capture_id.empty()) Print("{}", FormatClockVersion(reply));
  return kExitDone;
}

}  // namespace

void AddClocksCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<ClocksOptions>();
  CLI::App* command = app.add_subcommand(
      "clocks", "How far each instance's clock is off, and how well that is known");
  command
      ->add_option("--system-trace-filter-instance-id,--instance", options->instances,
                   "Only these instances (comma-separated)")
      ->allow_extra_args(false);
  command->add_option("--capture", options->capture_id,
                      "As they were in this capture: its id or the beginning of it (default: now)");
  command->footer(
      "Examples:\n  neurontrace clocks\n  neurontrace clocks --capture 01JD --output json");
  command->callback([&context, &run, options] {
    run = [&context, options] { return ListClocks(context, *options); };
  });
}

}  // namespace neurontrace::cli
