// SPDX-License-Identifier: Apache-2.0
#include "agent/pods/pod_matching.h"

#include <algorithm>
#include <tuple>

namespace neurontrace {
namespace {

bool Holds(const PodContainer& container, uint32_t device, uint32_t cores_per_device) {
  if (container.devices.contains(device)) return true;
  if (cores_per_device == 0) return false;
  const auto first = container.cores.lower_bound(device * cores_per_device);
  return first != container.cores.end() && *first / cores_per_device == device;
}

}  // namespace

PodMatch MatchPod(const PodAnswer& answer, const std::set<uint32_t>& devices) {
  PodMatch match;
  if (devices.empty()) return match;
  for (const PodContainer& container : answer.containers) {
    const bool holds_all = std::all_of(devices.begin(), devices.end(), [&](uint32_t device) {
      return Holds(container, device, answer.cores_per_device);
    });
    if (!holds_all) continue;
    if (!match.pod) {
      match.pod = container.pod;
    } else if (std::tie(match.pod->pod_namespace, match.pod->name) !=
               std::tie(container.pod.pod_namespace, container.pod.name)) {
      return {.pod = std::nullopt, .ambiguous = true};
    } else if (match.pod->container != container.pod.container) {
      match.pod->container.clear();
    }
  }
  return match;
}

}  // namespace neurontrace
