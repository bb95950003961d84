// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/pods/kubelet_client.h"
#include "agent/pods/pod_attribution.h"
#include "agent/source/neuron/tap_source.h"
#include "base/clock.h"
#include "base/event_loop.h"

namespace neurontrace {

// Everything of an agent that is about pods: builds it, connects it and owns it. The kubelet is
// asked on a thread of its own. On the agent's sequence.
// thread: pods: asks the kubelet, if --pod-resources names its socket
class AgentPods {
 public:
  // Begins to work once the sequence runs. All but the path outlive it; the registry owns the
  // metrics. Null where `kubelet_socket` is empty.
  static std::unique_ptr<AgentPods> Make(const std::string& kubelet_socket, TapSource& taps,
                                         TaskRunner& runner, const Clock& clock,
                                         prometheus::Registry& registry,
                                         const std::string& instance_id);
  AgentPods(const std::string& kubelet_socket, TapSource& taps, TaskRunner& runner,
            const Clock& clock);
  // Ends at once; a question that is under way is given up.
  ~AgentPods();
  AgentPods(const AgentPods&) = delete;
  AgentPods& operator=(const AgentPods&) = delete;

 private:
  void AddMetrics(prometheus::Registry& registry, const std::string& instance_id);
  void Publish();

  PodCounters counters_;
  KubeletClient kubelet_;
  PodLooker looker_;
  std::vector<std::pair<prometheus::Counter*, const std::atomic<uint64_t>*>> metrics_;
  EventLoop io_;
  PodAttribution attribution_;
  std::thread thread_;
};

}  // namespace neurontrace
