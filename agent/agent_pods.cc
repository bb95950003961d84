// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_pods.h"

#include <utility>
#include <vector>

#include "health/metric_builders.h"

namespace neurontrace {

std::unique_ptr<AgentPods> AgentPods::Make(const std::string& kubelet_socket, TapSource& taps,
                                           TaskRunner& runner, const Clock& clock,
                                           prometheus::Registry& registry,
                                           const std::string& instance_id) {
  if (kubelet_socket.empty()) return nullptr;
  auto pods = std::make_unique<AgentPods>(kubelet_socket, taps, runner, clock);
  pods->AddMetrics(registry, instance_id);
  pods->attribution_.Start();
  return pods;
}

AgentPods::AgentPods(const std::string& kubelet_socket, TapSource& taps, TaskRunner& runner,
                     const Clock& clock)
    : kubelet_(kubelet_socket),
      looker_([this] { return kubelet_.List(); }, ProcessReader(), counters_),
      attribution_(looker_, io_, runner, clock,
                   {.processes =
                        [this, &taps] {
                          Publish();
                          std::vector<PodProcess> processes;
                          for (const WorkerIdentity& worker : taps.SeenWorkers()) {
                            processes.push_back({worker.pid, worker.start_time_ticks});
                          }
                          return processes;
                        },
                    .tell =
                        [&taps](const PodLooker::Change& change) {
                          taps.SetPod(change.process.pid, change.process.start_time_ticks,
                                      change.pod);
                        }}),
      thread_([this] { io_.Run(); }) {}

AgentPods::~AgentPods() {
  kubelet_.Cancel();
  io_.PostTask([this] { io_.Quit(); });
  thread_.join();
}

void AgentPods::AddMetrics(prometheus::Registry& registry, const std::string& instance_id) {
  const struct {
    const char* name;
    const char* help;
    const std::atomic<uint64_t>& counter;
  } rows[] = {{"neurontrace_agent_pod_resources_asked_total",
               "Questions to the kubelet, which pods have which devices", counters_.asked},
              {"neurontrace_agent_pod_resources_failed_total",
               "Of these, those without an answer that could be used", counters_.failed},
              {"neurontrace_agent_pod_resources_attributed_total",
               "Workers whose pod was told by what they have open", counters_.attributed},
              {"neurontrace_agent_pod_resources_ambiguous_total",
               "Workers whose devices can be those of several pods", counters_.ambiguous},
              {"neurontrace_agent_pod_resources_refused_total",
               "Containers in answers with a name or a device that cannot be", counters_.refused}};
  for (const auto& row : rows) {
    metrics_.push_back(
        {&MakeCounter(registry, row.name, row.help, {{"instance_id", instance_id}}), &row.counter});
  }
}

void AgentPods::Publish() {
  for (const auto& [metric, counter] : metrics_) {
    RaiseCounter(*metric, static_cast<double>(counter->load(std::memory_order_relaxed)));
  }
}

}  // namespace neurontrace
