// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "cli/capture_view.h"
#include "cli/clocks_view.h"
#include "cli/command.h"
#include "cli/shared_options.h"
#include "cli/text.h"
#include "lib/base/standard_streams.h"

namespace neurontrace::cli {
namespace {

// Values of the options: instances as typed, possibly comma-separated; an empty id means now.
struct ClocksOptions {
  std::vector<std::string> instances;
  std::string capture_id;
};

// Prints the clocks of the selected instances, now or during a capture. Returns kExitDone even if
// none is known, which is normal shortly after a start.
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
  // An empty table would not explain itself.
  if (reply.clocks().empty()) {
    Print("{}", options.capture_id.empty()
                    ? "No clocks are known yet. An instance appears a few seconds after its agent "
                      "connects, unless the agent runs with --clock-probes off.\n"
                    : "No clocks are known for this capture: no clock measurements of its time are "
                      "stored.\n");
    return kExitDone;
  }
  Print("{}{}", FormatClocks(reply.clocks()), FormatDevicesAndOrder(reply));
  // Only the clocks of a capture have versions; the current ones change all the time.
  if (!options.capture_id.empty()) Print("{}", FormatClockVersion(reply));
  return kExitDone;
}

}  // namespace

void AddClocksCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<ClocksOptions>();
  CLI::App* command =
      app.add_subcommand("clocks", "Show the offset of each instance's clock, and its uncertainty");
  AddInstances(*command, options->instances);
  command
      ->add_option("--capture", options->capture_id,
                   "Show the clocks during this capture: its id, or a unique prefix (default: now)")
      ->check(NotEmpty("omit it for the current clocks"));
  command->footer(
      "Examples:\n  neurontrace clocks\n  neurontrace clocks --capture 01JD --output json");
  command->callback([&context, &run, options] {
    run = [&context, options] { return ListClocks(context, *options); };
  });
}

}  // namespace neurontrace::cli
