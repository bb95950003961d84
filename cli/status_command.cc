// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>

#include "cli/capture_view.h"
#include "cli/clocks_view.h"
#include "cli/command.h"
#include "cli/text.h"
#include "lib/base/standard_streams.h"

namespace neurontrace::cli {
namespace {

// Returns the number of workers with that of each state: "16 (14 ready, 1 busy: other profiler, 1
// no tap)". Without an answer only the number.
std::string DescribeWorkers(Context& context, uint32_t count) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::ListWorkersReply reply;
  std::string text = std::to_string(count);
  if (!context.stub().ListWorkers(&call, {}, &reply).ok()) return text;
  std::map<std::string, size_t> states;
  for (const v1::WorkerInventory& worker : reply.workers()) {
    ++states[WorkerStateName(worker.state())];
  }
  std::string sep = " (";
  for (const auto& [state, workers] : states) {
    text += fmt::format("{}{} {}", sep, workers, state);
    sep = ", ";
  }
  return states.empty() ? text : text + ")";
}

// Returns one line for each running capture, because standing captures are easily forgotten. "" if
// the aggregator does not answer.
std::string DescribeRunning(Context& context) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::ListCapturesReply reply;
  std::string text;
  if (!context.stub().ListCaptures(&call, {}, &reply).ok()) return text;
  for (const v1::Capture& capture : reply.captures()) {
    if (HasEnded(capture)) continue;
    text += fmt::format("            {} {}, {}{} since {}\n", capture.capture_id(),
                        CaptureModeName(capture.spec().mode()), CaptureStateName(capture.state()),
                        capture.spec().job().empty() ? "" : ", job " + capture.spec().job(),
                        FormatTime(capture.started_realtime_ns()));
  }
  return text;
}

// Prints the state of everything that the aggregator knows. JSON is only the reply of GetStatus.
int ShowStatus(Context& context) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::GetStatusReply reply;
  if (const auto status = context.stub().GetStatus(&call, {}, &reply); !status.ok()) {
    return Fail(context, status);
  }
  if (context.json) {
    Print("{}", FormatJson(reply));
    return kExitDone;
  }
  Print("aggregator  {} at {}, version {}, up since {}\n", reply.aggregator_id(),
        context.aggregator, reply.version(), FormatTime(reply.started_realtime_ns()));
  Print("agents      {} connected of {} known\n", reply.agents_connected(), reply.agents_known());
  Print("workers     {}\n", DescribeWorkers(context, reply.workers()));
  Print("captures    {} running, {} stored, {} on disk{}\n{}{}\n", reply.captures_running(),
        reply.captures_stored(), FormatBytes(reply.store_bytes()),
        reply.has_store_free_bytes()
            ? fmt::format(", {} free", FormatBytes(reply.store_free_bytes()))
            : "",
        reply.captures_running() == 0 ? "" : DescribeRunning(context),
        reply.has_store_problem()
            ? fmt::format("store       {}\n", DescribeStoreProblem(reply.store_problem()))
            : "");
  if (reply.agents().empty()) {
    Print(
        "No agent has connected yet. Start neurontrace-agent on each node with --aggregator set to "
        "this address.\n");
    return kExitDone;
  }
  // The table joins agents and clocks by their instance.
  std::map<std::string, std::string> clocks;  // by instance
  for (const v1::InstanceClock& clock : reply.clocks()) {
    clocks[clock.instance_id()] = FormatBound(clock);
  }
  // An agent without a clock has no estimate yet.
  std::vector<std::vector<std::string>> rows;
  for (const v1::Agent& agent : reply.agents()) {
    rows.push_back({agent.hello().instance_id(), agent.hello().host_name(),
                    agent.hello().agent_version(), agent.connected() ? "connected" : "away",
                    FormatTime(agent.last_seen_realtime_ns()), std::to_string(agent.workers()),
                    clocks.contains(agent.hello().instance_id())
                        ? clocks.at(agent.hello().instance_id())
                        : "-"});
  }
  Print("{}",
        FormatTable({"INSTANCE", "HOST", "AGENT", "STATE", "LAST SEEN", "WORKERS", "CLOCK WITHIN"},
                    rows));
  return kExitDone;
}

}  // namespace

void AddStatusCommand(CLI::App& app, Context& context, Run& run) {
  CLI::App* command =
      app.add_subcommand("status", "Show the state of the aggregator, agents and instances");
  command->footer("Example:\n  neurontrace status --output json");
  command->callback([&context, &run] { run = [&context] { return ShowStatus(context); }; });
}

}  // namespace neurontrace::cli
