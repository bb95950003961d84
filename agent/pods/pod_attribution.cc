// SPDX-License-Identifier: Apache-2.0
#include "agent/pods/pod_attribution.h"

#include <utility>
#include <vector>

namespace neurontrace {

PodAttribution::PodAttribution(PodResolver& looker, TaskRunner& io, TaskRunner& runner,
                               const Clock& clock, PodWorkers& workers)
    : looker_(looker), io_(io), runner_(runner), clock_(clock), workers_(workers) {}

PodAttribution::~PodAttribution() = default;

void PodAttribution::Start() { LookLater(); }

void PodAttribution::LookLater() {
  runner_.PostDelayedTask(weak_tasks_.Wrap([this] { Look(); }), kLookNs);
}

// The next look is scheduled when this one has returned, so that a slow kubelet is asked once at a
// time. Weak tasks drop the answer if this was destroyed meanwhile.
void PodAttribution::Look() {
  std::vector<PodProcess> processes = workers_.Processes();
  auto tell = weak_tasks_.Wrap([this](const std::vector<PodResolver::Change>& changes) {
    for (const PodResolver::Change& change : changes) workers_.OnPodChange(change);
    LookLater();
  });
  io_.PostTask([tell, &looker = looker_, &runner = runner_, now_ns = clock_.MonotonicNs(),
                processes = std::move(processes)] {
    runner.PostTask([tell, changes = looker.Look(processes, now_ns)]() mutable { tell(changes); });
  });
}

}  // namespace neurontrace
