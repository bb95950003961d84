// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/agent_reports.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/trace/limits.h"
#include "lib/trace/stream_cursor.h"
#include "lib/wire/agent_hello.h"
#include "lib/wire/conversions.h"
#include "lib/wire/stacks_codec.h"
#include "lib/wire/trigger_messages.h"

namespace neurontrace {
namespace {

// Returns whether any stream of the worker is stored, whatever its kind and core.
bool HasStream(const std::vector<StreamCursor>& cursors, const WorkerIdentity& worker) {
  return std::any_of(cursors.begin(), cursors.end(),
                     [&](const StreamCursor& cursor) { return cursor.stream.worker == worker; });
}

// Fills a start order. `begin` stays absent until the capture's start has been decided, so that an
// arming agent can tell that it has to wait for a BeginCaptureOrder.
void ToMessage(const StartOrder& order, v1::StartCaptureOrder* message) {
  message->set_capture_id(std::string(order.capture_id.bytes()));
  ToProto(order.spec, message->mutable_spec());
  message->set_arm(order.arm);
  if (order.begin) ToProto(*order.begin, message->mutable_begin());
}

}  // namespace

v1::AgentOrder ToOrder(const CaptureOrder& order) {
  v1::AgentOrder message;
  if (const auto* const start = std::get_if<StartOrder>(&order)) {
    ToMessage(*start, message.mutable_start_capture());
  } else if (const auto* const begin = std::get_if<BeginOrder>(&order)) {
    v1::BeginCaptureOrder& begin_capture = *message.mutable_begin_capture();
    begin_capture.set_capture_id(std::string(begin->capture_id.bytes()));
    ToProto(begin->begin, begin_capture.mutable_begin());
  } else {
    const StopOrder& stop = std::get<StopOrder>(order);
    v1::StopCaptureOrder& stop_capture = *message.mutable_stop_capture();
    stop_capture.set_capture_id(std::string(stop.capture_id.bytes()));
    stop_capture.set_host_raw_ns(stop.host_raw_ns);
  }
  return message;
}

absl::StatusOr<v1::AgentOrder> AgentReports::Connect(const v1::AgentReport& report,
                                                     ConnectionId from, std::string& agent_id) {
  if (!report.has_hello())
    return InvalidArgument("the first report of a Control call must be a hello");
  ASSIGN_OR_RETURN(const AgentInfo agent, FromProto(report.hello()));
  std::optional<ConnectionId> superseded;
  if (const KnownAgent* const known = coordinator_.registry().Find(agent.agent_id)) {
    superseded = known->connection;
  }
  ASSIGN_OR_RETURN(const std::vector<ResumedCapture> resumed, coordinator_.Connect(agent, from));
  // Ends the old connection of this agent, as two open calls would both receive orders. Comes after
  // the new connection counts, so that the end of the old one changes nothing.
  if (superseded) connections_.Supersede(*superseded);
  agent_id = agent.agent_id;
  // The welcome tells a returning agent which captures continue and from where each stream has to
  // be sent again. The stored cursors decide, not the agent's memory, which may be of another
  // store.
  v1::AgentOrder order;
  v1::Welcome& welcome = *order.mutable_welcome();
  welcome.set_protocol_version(kProtocolVersion);
  welcome.set_aggregator_id(aggregator_id_);
  welcome.set_aggregator_version(NEURONTRACE_VERSION);
  for (const ResumedCapture& capture : resumed) {
    v1::CaptureResume& resume = *welcome.add_captures();
    ToMessage(capture.start, resume.mutable_start());
    resume.set_stopping(capture.stopping);
    // A store that cannot be read ends the call; the agent reconnects and asks again.
    ASSIGN_OR_RETURN(const std::vector<StreamCursor> cursors,
                     chunks_.Cursors(capture.start.capture_id, agent_id));
    for (const StreamCursor& cursor : cursors) ToProto(cursor, resume.add_cursors());
    for (const WorkerIdentity& worker : capture.workers) {
      // Tells the agent that nothing of this worker is stored: it starts from the beginning.
      if (HasStream(cursors, worker)) continue;
      const StreamIdentity stream{.agent_id = agent_id,
                                  .worker = worker,
                                  .kind = StreamKind::kNeuronCore,
                                  .nc_idx = limits::kNoNcIdx};
      ToProto(StreamCursor{.stream = stream}, resume.add_cursors());
    }
  }
  return order;
}

std::optional<v1::AgentOrder> AgentReports::AfterWelcome() const {
  if (triggers_ == nullptr) return std::nullopt;
  return triggers_->RulesOrder();
}

// Every kind ends in a call to the coordinator, which checks that `from` is still the agent's
// connection and records that the agent is alive.
absl::Status AgentReports::Handle(const v1::AgentReport& report, const std::string& agent_id,
                                  ConnectionId from) {
  switch (report.report_case()) {
    case v1::AgentReport::kHello:
      return InvalidArgument("agent {} sent a second hello in one call", agent_id);
    case v1::AgentReport::kWorker: {
      ASSIGN_OR_RETURN(const WorkerInfo worker, FromProto(report.worker()));
      return coordinator_.OnWorker(agent_id, from, worker);
    }
    case v1::AgentReport::kWorkerGone: {
      ASSIGN_OR_RETURN(const WorkerIdentity worker, FromProto(report.worker_gone()));
      return coordinator_.OnWorkerGone(agent_id, from, worker);
    }
    case v1::AgentReport::kCaptureWorker: {
      ASSIGN_OR_RETURN(const CaptureWorkerStatus status, FromProto(report.capture_worker()));
      // The coordinator first: if it fails, the call ends and triggers do not see the report.
      RETURN_IF_ERROR(coordinator_.OnWorkerStatus(agent_id, from, status));
      if (triggers_ != nullptr) triggers_->OnWorkerStatus(agent_id, status);
      return absl::OkStatus();
    }
    case v1::AgentReport::kCaptureAgent: {
      const v1::CaptureAgentStatus& status = report.capture_agent();
      ASSIGN_OR_RETURN(const CaptureId capture, CaptureId::FromBytes(status.capture_id()));
      return coordinator_.OnAgentStatus(agent_id, from, capture, status.matched_workers(),
                                        status.finished());
    }
    case v1::AgentReport::kTriggerFired: {
      // A firing is also a sign of life. OnHeartbeat fails if the connection has been superseded.
      ASSIGN_OR_RETURN(const TriggerFired fired, FromProto(report.trigger_fired()));
      RETURN_IF_ERROR(coordinator_.OnHeartbeat(agent_id, from));
      if (triggers_ != nullptr) triggers_->OnFired(agent_id, fired);
      return absl::OkStatus();
    }
    case v1::AgentReport::kWorkerStacks: {
      ASSIGN_OR_RETURN(const WorkerStacks stacks, FromProto(report.worker_stacks()));
      RETURN_IF_ERROR(coordinator_.OnHeartbeat(agent_id, from));
      if (stacks_ != nullptr) stacks_->OnStacks(agent_id, stacks);
      return absl::OkStatus();
    }
    case v1::AgentReport::kHeartbeat:
    case v1::AgentReport::REPORT_NOT_SET:  // from a newer agent: still a sign of life
      return coordinator_.OnHeartbeat(agent_id, from);
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
