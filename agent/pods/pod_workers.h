// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "agent/pods/pod_resolver.h"

namespace neurontrace {

// The workers of this node, as PodAttribution sees them. Called on the agent's sequence.
class PodWorkers {
 public:
  virtual ~PodWorkers() = default;

  // Returns the worker processes that are here now.
  virtual std::vector<PodProcess> Processes() = 0;
  // Takes a change of a worker's pod.
  virtual void OnPodChange(const PodResolver::Change& change) = 0;
};

}  // namespace neurontrace
