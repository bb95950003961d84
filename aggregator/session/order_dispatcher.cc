// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/order_dispatcher.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

namespace neurontrace {

// Returns the agent if it is connected, else nullptr.
static const KnownAgent* FindConnected(const AgentRegistry& registry, const std::string& agent_id) {
  const KnownAgent* const agent = registry.Find(agent_id);
  return agent != nullptr && agent->connection ? agent : nullptr;
}

// host_raw_ns is 0 if the host's clock is not known well enough to compute a moment.
CaptureBegin OrderDispatcher::BeginFor(const AgentInfo& agent, const CaptureBegin& begin) const {
  CaptureBegin told = begin;
  told.host_raw_ns = told.bound_ns = 0;
  const std::optional<MomentOnHost> moment = deps_.clocks.MomentOn(agent, begin.reference_ns);
  if (!moment) return told;
  told.host_raw_ns = moment->raw_ns;
  told.bound_ns = moment->bound_ns;
  return told;
}

uint64_t OrderDispatcher::WidestBound(const CaptureRecord& record,
                                      const CaptureBegin& begin) const {
  uint64_t widest_ns = 0;
  for (const CaptureAgentPart& part : record.agents) {
    const KnownAgent* const agent = FindConnected(deps_.registry, part.agent_id);
    if (agent == nullptr) continue;
    const uint64_t bound_ns = BeginFor(agent->info, begin).bound_ns;
    if (bound_ns == 0) return 0;
    widest_ns = std::max(widest_ns, bound_ns);
  }
  return widest_ns;
}

void OrderDispatcher::SendToAll(const CaptureRecord& record, const CaptureOrder& order) {
  for (const CaptureAgentPart& part : record.agents) {
    const KnownAgent* const agent = FindConnected(deps_.registry, part.agent_id);
    if (agent != nullptr) deps_.sender.SendOrder(part.agent_id, *agent->connection, order);
  }
}

void OrderDispatcher::SendBegin(const CaptureRecord& record, uint64_t in_ns) {
  assert(record.begin.has_value());
  for (const CaptureAgentPart& part : record.agents) {
    const KnownAgent* const agent = FindConnected(deps_.registry, part.agent_id);
    if (agent == nullptr) continue;
    const CaptureBegin begin = BeginFor(agent->info, *record.begin);
    if (begin.host_raw_ns != 0) {
      deps_.sender.SendOrder(part.agent_id, *agent->connection, BeginOrder{record.id, begin});
    } else {
      // The order is made when it is due, because by then the clock may be known or the agent gone.
      Delay(in_ns, {.capture_id = record.id, .agent_id = part.agent_id});
    }
  }
}

void OrderDispatcher::SendExecutions(const CaptureRecord& record) {
  assert(record.begin.has_value());
  for (const CaptureAgentPart& part : record.agents) {
    const KnownAgent* const agent = FindConnected(deps_.registry, part.agent_id);
    if (agent == nullptr) continue;
    const CaptureBegin begin = BeginFor(agent->info, *record.begin);
    deps_.sender.SendOrder(part.agent_id, *agent->connection, BeginOrder{record.id, begin});
  }
}

void OrderDispatcher::SendStop(const CaptureRecord& record, uint64_t in_ns) {
  // A beginning that is still held back must not follow the stop.
  if (in_ns == 0) {
    std::erase_if(delayed_, [&](const auto& item) { return item.second.capture_id == record.id; });
  }
  CaptureBegin moment;
  moment.reference_ns = deps_.clocks.ReferenceNs() + in_ns;
  for (const CaptureAgentPart& part : record.agents) {
    const KnownAgent* const agent = FindConnected(deps_.registry, part.agent_id);
    if (agent == nullptr) continue;
    const uint64_t raw_ns = in_ns > 0 ? BeginFor(agent->info, moment).host_raw_ns : 0;
    if (in_ns > 0 && raw_ns == 0) {
      Delay(in_ns, {.capture_id = record.id, .agent_id = part.agent_id, .is_stop = true});
    } else {
      deps_.sender.SendOrder(part.agent_id, *agent->connection, StopOrder{record.id, raw_ns});
    }
  }
}

// Called on every reconnection, so it must describe the whole state: the agent may have restarted
// and know nothing.
ResumedCapture OrderDispatcher::ResumeFor(const CaptureSession& session, const AgentInfo& agent) {
  const CaptureRecord& record = session.record();
  ResumedCapture resume{.start = {.capture_id = record.id, .spec = record.spec}};
  if (record.state == CaptureState::kArming) {
    resume.start.arm = true;
    return resume;
  }
  resume.workers = session.ActiveWorkers(agent.instance_id);
  if (record.begin) resume.start.begin = BeginFor(agent, *record.begin);
  resume.stopping = record.state != CaptureState::kRecording;
  const uint64_t reference_ns = deps_.clocks.ReferenceNs();
  if (resume.stopping || !record.begin || record.begin->reference_ns <= reference_ns) {
    return resume;
  }
  if (resume.start.begin->host_raw_ns != 0) return resume;
  // The beginning is in the future, and the agent cannot wait for it by its own clock: it arms now
  // and gets the order at the moment.
  Delay(record.begin->reference_ns - reference_ns,
        {.capture_id = record.id, .agent_id = agent.agent_id});
  resume.start.arm = true;
  resume.start.begin.reset();
  return resume;
}

// The task may come a little late; Tick calls SendDue as well.
void OrderDispatcher::Delay(uint64_t in_ns, DelayedOrder order) {
  assert(deps_.sequence == nullptr || deps_.sequence->RunsTasksOnCurrentThread());
  delayed_.emplace(deps_.clock.MonotonicNs() + in_ns, std::move(order));
  if (deps_.sequence != nullptr) deps_.sequence->PostDelayedTask([this] { SendDue(); }, in_ns);
}

void OrderDispatcher::SendDue() {
  assert(deps_.sequence == nullptr || deps_.sequence->RunsTasksOnCurrentThread());
  const uint64_t now_ns = deps_.clock.MonotonicNs();
  while (!delayed_.empty() && delayed_.begin()->first <= now_ns) {
    const DelayedOrder order = std::move(delayed_.begin()->second);
    delayed_.erase(delayed_.begin());
    const KnownAgent* const agent = FindConnected(deps_.registry, order.agent_id);
    const CaptureRecord* const record = deps_.captures.Find(order.capture_id);
    // An agent that is away gets everything when it returns.
    if (record == nullptr || agent == nullptr) continue;
    if (order.is_stop) {
      deps_.sender.SendOrder(order.agent_id, *agent->connection, StopOrder{record->id});
    } else {
      assert(record->begin.has_value());
      deps_.sender.SendOrder(order.agent_id, *agent->connection,
                             BeginOrder{record->id, BeginFor(agent->info, *record->begin)});
    }
  }
}

}  // namespace neurontrace
