// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/pods/pod_lister.h"
#include "lib/base/status.h"

namespace neurontrace {

// For tests: a kubelet that may be away.
class FakePodLister final : public PodLister {
 public:
  absl::StatusOr<PodAnswer> List() override {
    if (is_away) return Unavailable("nobody listens");
    return answer;
  }

  PodAnswer answer;
  bool is_away = false;
};

}  // namespace neurontrace
