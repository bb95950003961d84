// SPDX-License-Identifier: Apache-2.0
// How the fleet is told of one moment: ahead of it, as a time of each host's own clock, or, where
// that is not known, at that moment.
#include <algorithm>
#include <utility>

#include "aggregator/session/capture_arming.h"
#include "aggregator/session/coordinator.h"

namespace neurontrace {

CaptureBegin Coordinator::BeginFor(const AgentInfo& agent, const CaptureBegin& begin) const {
  CaptureBegin told = begin;
  told.host_raw_ns = told.bound_ns = 0;
  if (!inputs_.host_moment) return told;
  const std::optional<MomentOnHost> moment = inputs_.host_moment(agent, begin.reference_ns);
  if (!moment) return told;
  told.host_raw_ns = moment->raw_ns;
  told.bound_ns = moment->bound_ns;
  return told;
}

uint64_t Coordinator::WidestBound(const CaptureRecord& record, const CaptureBegin& begin) const {
  uint64_t widest_ns = 0;
  for (const CaptureAgentPart& part : record.agents) {
    const KnownAgent* const agent = registry_.Find(part.agent_id);
    if (agent == nullptr || !agent->connection) continue;
    widest_ns = std::max(widest_ns, BeginFor(agent->info, begin).bound_ns);
  }
  return widest_ns;
}

void Coordinator::SendBegin(const CaptureRecord& record, uint64_t in_ns) {
  for (const CaptureAgentPart& part : record.agents) {
    const KnownAgent* const agent = registry_.Find(part.agent_id);
    if (agent == nullptr || !agent->connection) continue;
    const CaptureBegin begin = BeginFor(agent->info, *record.begin);
    if (begin.host_raw_ns != 0) {
      outputs_.send(part.agent_id, *agent->connection, BeginOrder{record.id, begin});
    } else {
      Delay(in_ns, {.capture_id = record.id, .agent_id = part.agent_id});
    }
  }
}

void Coordinator::SendStop(const CaptureRecord& record, uint64_t in_ns) {
  // What was to begin later does not.
  if (in_ns == 0) {
    std::erase_if(delayed_, [&](const auto& item) { return item.second.capture_id == record.id; });
  }
  CaptureBegin moment;
  moment.reference_ns = Now().reference_ns + in_ns;
  for (const CaptureAgentPart& part : record.agents) {
    const KnownAgent* const agent = registry_.Find(part.agent_id);
    if (agent == nullptr || !agent->connection) continue;
    const uint64_t raw_ns = in_ns > 0 ? BeginFor(agent->info, moment).host_raw_ns : 0;
    if (in_ns > 0 && raw_ns == 0) {
      Delay(in_ns, {.capture_id = record.id, .agent_id = part.agent_id, .is_stop = true});
    } else {
      outputs_.send(part.agent_id, *agent->connection, StopOrder{record.id, raw_ns});
    }
  }
}

void Coordinator::SendToAll(const CaptureRecord& record, const CaptureOrder& order) {
  for (const CaptureAgentPart& part : record.agents) {
    const KnownAgent* const agent = registry_.Find(part.agent_id);
    if (agent == nullptr || !agent->connection) continue;
    outputs_.send(part.agent_id, *agent->connection, order);
  }
}

void Coordinator::Delay(uint64_t in_ns, DelayedOrder order) {
  delayed_.emplace(clock_.MonotonicNs() + in_ns, std::move(order));
  if (outputs_.wake) outputs_.wake(in_ns);
}

void Coordinator::SendDelayed(uint64_t now_monotonic_ns) {
  while (!delayed_.empty() && delayed_.begin()->first <= now_monotonic_ns) {
    const DelayedOrder order = std::move(delayed_.begin()->second);
    delayed_.erase(delayed_.begin());
    const KnownAgent* const agent = registry_.Find(order.agent_id);
    const Session* const session = FindSession(order.capture_id);
    // It is told all of it when it returns.
    if (session == nullptr || agent == nullptr || !agent->connection) continue;
    const CaptureRecord& record = session->state.record();
    if (order.is_stop) {
      outputs_.send(order.agent_id, *agent->connection, StopOrder{record.id});
    } else {
      outputs_.send(order.agent_id, *agent->connection,
                    BeginOrder{record.id, BeginFor(agent->info, *record.begin)});
    }
  }
}

}  // namespace neurontrace
