// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/capture_clocks.h"

#include <algorithm>
#include <tuple>

namespace neurontrace {

const InstanceClock* CaptureClocks::Find(const WorkerIdentity& worker) const {
  const auto key = [](const auto& of) { return std::tie(of.instance_id, of.boot_id); };
  const auto found =
      std::lower_bound(instances.begin(), instances.end(), worker,
                       [&](const InstanceClock& a, const auto& b) { return key(a) < key(b); });
  return found != instances.end() && key(*found) == key(worker) ? &*found : nullptr;
}

}  // namespace neurontrace
