// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/pods/pod_resources.pb.h"
#include "agent/source/neuron/tap/job_facts.h"

namespace neurontrace {

// A container with Neuron devices, or with some of their cores. Numbers are the node's.
struct PodContainer {
  WorkerPod pod;
  std::set<uint32_t> devices;
  std::set<uint32_t> cores;
  friend bool operator==(const PodContainer&, const PodContainer&) = default;
};

// What a kubelet says of the pods of its node, checked. A plain value.
struct PodAnswer {
  std::vector<PodContainer> containers;
  uint32_t cores_per_device = 0;  // 0: not known, so cores report no device
  uint64_t refused = 0;           // containers with a name or a number that cannot be
  friend bool operator==(const PodAnswer&, const PodAnswer&) = default;
};

// Pure. RESOURCE_EXHAUSTED for more than lib/trace/pod_limits.h allows. `cores_per_device` stays 0.
absl::StatusOr<PodAnswer> ReadPodAnswer(const ::v1::ListPodResourcesResponse& answer);

// How many cores each device has by what can be given to containers; 0: it does not say. Pure.
uint32_t CoresPerDevice(const ::v1::AllocatableResourcesResponse& answer);

}  // namespace neurontrace
