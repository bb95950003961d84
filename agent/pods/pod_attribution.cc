// SPDX-License-Identifier: Apache-2.0
#include "agent/pods/pod_attribution.h"

#include <utility>

namespace neurontrace {

PodAttribution::PodAttribution(PodLooker& looker, TaskRunner& io, TaskRunner& runner,
                               const Clock& clock, Hooks hooks)
    : looker_(looker),
      io_(io),
      runner_(runner),
      clock_(clock),
      hooks_(std::move(hooks)),
      self_(std::make_shared<PodAttribution*>(this)) {}

PodAttribution::~PodAttribution() = default;

void PodAttribution::Start() { LookLater(); }

void PodAttribution::LookLater() {
  runner_.PostDelayedTask(
      [self = std::weak_ptr(self_)] {
        if (const auto attribution = self.lock()) (*attribution)->Look();
      },
      kLookNs);
}

// The next look begins when this one has come back, so that a kubelet that is slow is never waited
// for twice.
void PodAttribution::Look() {
  std::vector<PodProcess> processes = hooks_.processes();
  io_.PostTask([self = std::weak_ptr(self_), &looker = looker_, &runner = runner_,
                now_ns = clock_.MonotonicNs(), processes = std::move(processes)] {
    std::vector<PodLooker::Change> changes = looker.Look(processes, now_ns);
    runner.PostTask([self, changes = std::move(changes)] {
      const auto attribution = self.lock();
      if (!attribution) return;
      for (const PodLooker::Change& change : changes) (*attribution)->hooks_.tell(change);
      (*attribution)->LookLater();
    });
  });
}

}  // namespace neurontrace
