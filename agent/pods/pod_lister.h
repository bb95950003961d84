// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "agent/pods/pod_answer.h"

namespace neurontrace {

// Lists the devices of the pods of this node; the kubelet does, through KubeletClient. Called by
// one thread at a time.
class PodLister {
 public:
  virtual ~PodLister() = default;
  // Blocks until the answer. Fails if there is none; a later call may succeed.
  virtual absl::StatusOr<PodAnswer> List() = 0;
};

}  // namespace neurontrace
