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

// A container that was given Neuron devices, or some of their cores. Numbers are the node's. A
// process may hold a device because its container has the device or one of its cores.
struct PodContainer {
  WorkerPod pod;
  // Indexes of devices, and numbers of logical cores counted through all devices of the node.
  std::set<uint32_t> devices;
  std::set<uint32_t> cores;
  friend bool operator==(const PodContainer&, const PodContainer&) = default;
};

// The pods of a node with Neuron devices, as its kubelet lists them, after checking. A plain value.
struct PodAnswer {
  std::vector<PodContainer> containers;
  uint32_t cores_per_device = 0;  // 0: not known, so cores report no device
  uint64_t refused = 0;           // containers with a name or a number that cannot be
  friend bool operator==(const PodAnswer&, const PodAnswer&) = default;
};

// Reads and checks a kubelet's list. Containers with an invalid name or number are left out and
// counted in `refused`. Fails with RESOURCE_EXHAUSTED if there are more entries than
// lib/trace/pod_limits.h allows. `cores_per_device` stays 0. Pure. Names are shown and reported, so
// only those that Kubernetes allows pass.
absl::StatusOr<PodAnswer> ReadPodAnswer(const ::v1::ListPodResourcesResponse& answer);

// Returns how many logical cores each device has, computed from what the node can allocate; 0 if
// that does not follow. Pure.
uint32_t CoresPerDevice(const ::v1::AllocatableResourcesResponse& answer);

}  // namespace neurontrace
