// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_stacks.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "lib/health/metric_builders.h"
#include "lib/trace/artifact.h"

namespace neurontrace {

AgentStacks::AgentStacks(const std::string& program, ControlSession& control,
                         ArtifactUploader& uploader, TaskRunner& runner, const Clock& clock,
                         prometheus::Registry& registry, const std::string& instance_id)
    : control_(control),
      uploader_(uploader),
      clock_(clock),
      workers_(MakeCounter(registry, "neurontrace_agent_stacks_workers_total",
                           "Workers whose stacks were read, whatever the outcome",
                           {{"instance_id", instance_id}})),
      taken_(MakeCounter(registry, "neurontrace_agent_stacks_taken_total",
                         "Workers whose Python stacks were read", {{"instance_id", instance_id}})),
      refused_(MakeCounter(registry, "neurontrace_agent_stacks_refused_total",
                           "Workers whose stacks were not read because too many waited",
                           {{"instance_id", instance_id}})),
      files_lost_(MakeCounter(registry, "neurontrace_agent_stacks_files_lost_total",
                              "Files with stacks that the aggregator did not store",
                              {{"instance_id", instance_id}})),
      sampler_(program, runner, *this) {}

void AgentStacks::Collect(const StacksOrder& order) {
  spdlog::info("stacks: reading {} workers for capture {}", order.workers.size(),
               order.capture_id.ToString());
  for (const WorkerIdentity& worker : order.workers) {
    const auto known = control_.workers().find(worker);
    const bool is_known = known != control_.workers().end();
    sampler_.Collect(order.capture_id, order.collection,
                     {.worker = worker,
                      .is_known = is_known,
                      .is_elsewhere = is_known && known->second.pid_claimed});
  }
}

void AgentStacks::OnStacks(const StacksReading& reading) {
  const StackSampler::Counters& counters = sampler_.counters();
  RaiseCounter(workers_, static_cast<double>(counters.workers));
  RaiseCounter(taken_, static_cast<double>(counters.taken));
  RaiseCounter(refused_, static_cast<double>(counters.refused));
  control_.ReportStacks(reading.stacks);
  if (reading.raw.empty()) return;
  const WorkerIdentity& worker = reading.stacks.worker;
  const uint64_t now_ns = clock_.RealtimeNs();
  const auto place = MakeArtifactPlace(fmt::format("{}_pid_{}", worker.instance_id, worker.pid),
                                       std::to_string(now_ns), "stacks.json");
  if (!place.ok()) return OnUploaded({ArtifactSink::Fate::kRefused, place.status().ToString()});
  uploader_.SubmitContent(
      reading.stacks.capture_id, *place, now_ns, reading.raw,
      weak_tasks_.Wrap([this](const ArtifactSink::Outcome& outcome) { OnUploaded(outcome); }));
}

void AgentStacks::OnUploaded(const ArtifactSink::Outcome& outcome) {
  if (outcome.fate == ArtifactSink::Fate::kKept) return;
  files_lost_.Increment();
  spdlog::warn("stacks: a file is not stored: {}", outcome.why);
}

}  // namespace neurontrace
