// SPDX-License-Identifier: Apache-2.0
#include "agent/pods/pod_attribution.h"

#include <utility>
#include <vector>

namespace neurontrace {

PodAttribution::PodAttribution(PodResolver& resolver, TaskRunner& io, TaskRunner& runner,
                               const Clock& clock, PodWorkers& workers)
    : resolver_(resolver), io_(io), runner_(runner), clock_(clock), workers_(workers) {}

PodAttribution::~PodAttribution() = default;

void PodAttribution::Start() { ScheduleNextPoll(); }

void PodAttribution::ScheduleNextPoll() {
  runner_.PostDelayedTask(weak_tasks_.Wrap([this] { Poll(); }), kPollNs);
}

// The next look is scheduled when this one has returned, so that a slow kubelet is asked once at a
// time. Weak tasks drop the answer if this was destroyed meanwhile.
void PodAttribution::Poll() {
  std::vector<PodProcess> processes = workers_.Processes();
  auto report = weak_tasks_.Wrap([this](const std::vector<PodResolver::Change>& changes) {
    for (const PodResolver::Change& change : changes) workers_.OnPodChange(change);
    ScheduleNextPoll();
  });
  io_.PostTask([report, &resolver = resolver_, &runner = runner_, now_ns = clock_.MonotonicNs(),
                processes = std::move(processes)] {
    runner.PostTask(
        [report, changes = resolver.Poll(processes, now_ns)]() mutable { report(changes); });
  });
}

}  // namespace neurontrace
