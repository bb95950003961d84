// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/capture_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "aggregator/session/capture_arming.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/execution_coverage.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {
namespace {

// Names a status in a warning. Framework files belong to an instance and to no worker.
std::string NameOf(const CaptureWorkerStatus& status) {
  if (status.framework) return fmt::format("framework files of {}", status.worker.instance_id);
  return fmt::format("worker {}", ToString(status.worker));
}

// Appends the agent's own text if there is one.
std::string WithDetail(std::string text, const std::string& detail) {
  return detail.empty() ? text : fmt::format("{}: {}", text, detail);
}

// Names the obstacle only if the agent's text does not contain it already.
std::string DescribeRefusal(const CaptureWorkerStatus& status) {
  const std::string_view obstacle = ToString(status.obstacle);
  const bool is_explicit = status.detail.find(obstacle) != std::string::npos;
  std::string text = NameOf(status) + " could not take part";
  if (!is_explicit) text += fmt::format(" ({})", obstacle);
  return WithDetail(std::move(text), status.detail);
}

// Returns whether neither a worker has reported nor any agent has counted one.
bool HasNoMatch(const CaptureRecord& record) {
  return record.workers.empty() &&
         std::all_of(record.agents.begin(), record.agents.end(),
                     [](const auto& part) { return part.matched_workers == 0; });
}

// Marks the agents that have not finished as vanished. Returns whether all have finished.
bool CheckAgents(const std::set<std::string, std::less<>>& connected_agents,
                 CaptureRoster& roster) {
  bool all_finished = true;
  for (CaptureAgentPart& part : roster.record().agents) {
    if (part.finished) continue;
    all_finished = false;
    part.vanished = true;
    roster.WarnAtEnd(fmt::format(
        "agent {} on {} {}: its undelivered data is missing", part.agent_id, part.instance_id,
        connected_agents.contains(part.agent_id) ? "is connected but did not finish"
                                                 : "disconnected and did not return"));
  }
  return all_finished;
}

// Makes selected workers that were never reported participants which were refused or lost.
void AddUnreported(CaptureRoster& roster) {
  // A copy: AddParticipant removes from the original.
  const std::vector<NonParticipant> non_participants = roster.record().non_participants;
  for (const NonParticipant& non_participant : non_participants) {
    if (!IsUnexplained(non_participant)) continue;
    if (const CaptureObstacle obstacle = roster.BlockingReason(non_participant);
        obstacle != CaptureObstacle::kNone) {
      roster.AddParticipant(non_participant, CaptureWorkerState::kRefused, obstacle, "");
      continue;
    }
    const CaptureAgentPart* const part = roster.PartOf(non_participant.worker);
    if (part == nullptr || !part->finished) continue;
    roster.AddParticipant(
        non_participant, CaptureWorkerState::kLost, CaptureObstacle::kAgentLost,
        "its agent was asked to record it, but the restarted agent does not know of it");
  }
}

// Gives a worker that has not reached a final state the one that is known now: its agent has
// finished, or is not waited for.
void Finalize(CaptureWorkerStatus& status) {
  const bool never_began =
      status.state == CaptureWorkerState::kArmed ||
      (status.state == CaptureWorkerState::kStarting && status.obstacle != CaptureObstacle::kNone);
  if (never_began) {
    status.state = CaptureWorkerState::kRefused;
    if (status.obstacle == CaptureObstacle::kNone) {
      status.obstacle = CaptureObstacle::kNoAnswer;
      status.detail = "it was armed, but never reported its start";
    }
  } else if (!IsFinal(status.state)) {
    // Its agent has finished and does not know it: both died before any of its data was stored.
    status.state = CaptureWorkerState::kLost;
    status.obstacle = CaptureObstacle::kAgentLost;
    status.detail = "it and its agent ended before all its data was stored";
  }
  assert(IsFinal(status.state));
}

// Returns whether every worker has delivered what it read; adds a warning for each that has not.
bool CheckWorkers(CaptureRoster& roster) {
  bool all_delivered = true;
  for (CaptureWorkerStatus& status : roster.record().workers) {
    const CaptureAgentPart* const part = roster.PartOf(status.worker);
    const bool has_finished = part != nullptr && part->finished;
    // Another capture has suspended its flight recorder, which therefore has nothing to deliver.
    if (status.state == CaptureWorkerState::kSuspended && has_finished &&
        roster.record().spec.mode == CaptureMode::kFlightRecorder) {
      status.state = CaptureWorkerState::kComplete;
    }
    if (status.state == CaptureWorkerState::kComplete) continue;
    // A late agent may not know a worker that ended meanwhile. Its streams tell whether all of its
    // data is stored.
    const bool is_late = has_finished && part->vanished;
    if (is_late && !IsFinal(status.state)) continue;
    all_delivered = false;
    // An agent that may still deliver the data may also still report it.
    if (part != nullptr && !part->finished && !IsFinal(status.state)) continue;
    Finalize(status);
    if (status.state == CaptureWorkerState::kRefused) {
      roster.WarnAtEnd(DescribeRefusal(status));
    } else {
      roster.WarnAtEnd(WithDetail(NameOf(status) + " was lost while recording", status.detail));
    }
  }
  return all_delivered;
}

// Adds one warning for all workers with a core that did not reach the capture's last execution.
// That leaves the capture complete, as a stop by command does: everything up to there is stored.
void WarnOfEarlyEnds(CaptureRoster& roster) {
  const CaptureRecord& record = roster.record();
  size_t early = 0;
  uint64_t lowest = 0;
  std::string furthest_behind;
  for (const CaptureWorkerStatus& status : record.workers) {
    if (status.state != CaptureWorkerState::kComplete) continue;
    const std::string why = DescribeEarlyEnd(*record.begin, status);
    if (why.empty()) continue;
    if (++early > 1 && status.lowest_newest_execution >= lowest) continue;
    lowest = status.lowest_newest_execution;
    furthest_behind = fmt::format("{}: {}", NameOf(status), why);
  }
  if (early == 0) return;
  roster.WarnAtEnd(early == 1 ? furthest_behind
                              : fmt::format("{}, and {} more workers ended before it on a core",
                                            furthest_behind, early - 1));
}

// Returns whether every core of every worker of a capture by executions has recorded from the first
// one on; adds a warning for each worker with a core that has not.
bool CheckExecutions(CaptureRoster& roster) {
  const CaptureRecord& record = roster.record();
  if (!record.begin || !record.spec.conditions.by_execution()) return true;
  const CaptureBegin& begin = *record.begin;
  bool all_reached = true;
  for (const CaptureWorkerStatus& status : record.workers) {
    // Agents that report no executions deliver everything from the beginning on.
    const bool recorded = status.first_execution != 0 || status.events_read > 0;
    if (status.framework || status.state != CaptureWorkerState::kComplete) continue;
    if (const std::string late = DescribeLateCores(begin, status); !late.empty()) {
      all_reached = false;
      roster.WarnAtEnd(fmt::format("{}: {}", NameOf(status), late));
    }
    if (recorded) continue;
    all_reached = false;
    if (begin.first_execution == 0) continue;
    roster.WarnAtEnd(fmt::format("{} recorded nothing: execution {} was to be its first, and {}",
                                 NameOf(status), begin.first_execution,
                                 status.newest_execution == 0
                                     ? "it reported none"
                                     : fmt::format("its newest was {}", status.newest_execution)));
  }
  if (!all_reached && begin.first_execution == 0) {
    roster.WarnAtEnd(
        "nothing was recorded: no execution to start at was found, because no worker reported one "
        "before the stop");
  }
  WarnOfEarlyEnds(roster);
  return all_reached;
}

}  // namespace

bool CheckEnd(const std::set<std::string, std::less<>>& connected_agents,
              std::string_view inventory, CaptureRoster& roster) {
  roster.record().end_warnings.clear();
  bool complete = CheckAgents(connected_agents, roster);
  AddUnreported(roster);
  if (HasNoMatch(roster.record())) {
    roster.WarnAtEnd(fmt::format("no worker matched; {}", inventory));
    complete = false;
  }
  // Every check runs, whatever the earlier ones found, as each adds its own warnings.
  complete = CheckWorkers(roster) && complete;
  complete = CheckExecutions(roster) && complete;
  return complete;
}

}  // namespace neurontrace
