// SPDX-License-Identifier: Apache-2.0
#include "agent/control/pending_reports.h"

#include <cassert>
#include <utility>
#include <variant>

#include "lib/trace/trigger_rule.h"
#include "lib/trace/worker_info.h"
#include "lib/trace/worker_stacks.h"

namespace neurontrace {

PendingReports::Topic PendingReports::TopicOf(const AgentReport& report) {
  Topic topic;
  topic.kind = report.index();
  if (const auto* worker = std::get_if<WorkerInfo>(&report)) {
    topic.worker = worker->identity;
  } else if (const auto* gone = std::get_if<WorkerGone>(&report)) {
    topic.worker = gone->worker;
  } else if (const auto* status = std::get_if<CaptureWorkerStatus>(&report)) {
    topic.worker = status->worker;
    topic.capture_id = status->capture_id;
    topic.framework = status->framework;
  } else if (const auto* agent = std::get_if<CaptureAgentStatus>(&report)) {
    topic.capture_id = agent->capture_id;
  } else if (const auto* fired = std::get_if<TriggerFired>(&report)) {
    topic.rule = fired->rule;
    topic.worker = fired->worker;
  } else if (const auto* stacks = std::get_if<WorkerStacks>(&report)) {
    topic.worker = stacks->worker;
    topic.capture_id = stacks->capture_id;
  }
  return topic;
}

// A replaced report keeps its place in line_, so that a subject which changes all the time is not
// put off for ever. The status of a whole agent is the exception.
void PendingReports::Put(AgentReport report) {
  const Topic topic = TopicOf(report);
  // Whether a worker is here or gone is one question with one answer.
  if (const auto* worker = std::get_if<WorkerInfo>(&report)) {
    Remove(TopicOf(WorkerGone{worker->identity}));
  } else if (const auto* gone = std::get_if<WorkerGone>(&report)) {
    WorkerInfo info;
    info.identity = gone->worker;
    Remove(TopicOf(info));
  }
  if (std::holds_alternative<CaptureAgentStatus>(report) && reports_.contains(topic)) {
    // It may say that all is finished: then after everything that waits, not before.
    std::erase(line_, topic);
    line_.push_back(topic);
  }
  const auto [it, is_new] = reports_.insert_or_assign(topic, std::move(report));
  if (is_new) line_.push_back(topic);
}

std::optional<AgentReport> PendingReports::Take() {
  if (line_.empty()) return std::nullopt;
  auto node = reports_.extract(line_.front());
  assert(!node.empty());
  line_.pop_front();
  return std::move(node.mapped());
}

void PendingReports::Remove(const Topic& topic) {
  if (reports_.erase(topic) != 0) std::erase(line_, topic);
}

template <typename Predicate>
void PendingReports::RemoveIf(Predicate predicate) {
  if (std::erase_if(reports_, predicate) == 0) return;
  std::erase_if(line_, [this](const Topic& topic) { return !reports_.contains(topic); });
}

void PendingReports::ClearButTriggers() {
  RemoveIf([](const auto& item) { return !std::holds_alternative<TriggerFired>(item.second); });
}

void PendingReports::ForgetTriggersBefore(uint64_t host_realtime_ns) {
  RemoveIf([host_realtime_ns](const auto& item) {
    const auto* fired = std::get_if<TriggerFired>(&item.second);
    return fired != nullptr && fired->host_realtime_ns < host_realtime_ns;
  });
}

void PendingReports::ForgetCapture(const CaptureId& capture_id) {
  RemoveIf([&](const auto& item) { return item.first.capture_id == capture_id; });
}

}  // namespace neurontrace
