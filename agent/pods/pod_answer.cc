// SPDX-License-Identifier: Apache-2.0
#include "agent/pods/pod_answer.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "lib/base/status.h"
#include "lib/trace/pod_limits.h"

namespace neurontrace {
namespace {

// The names under which AWS's device plugin registers its resources; neurondevice is an older one.
// Its source is not public; docs/decisions/0032-the-kubelet-says-whose-devices-a-worker-has-open.md
// has the evidence.
constexpr std::string_view kCoreResource = "aws.amazon.com/neuroncore";
constexpr std::string_view kDeviceResources[] = {"aws.amazon.com/neuron",
                                                 "aws.amazon.com/neurondevice"};

// Returns true for lower-case letters, digits, dashes and dots (RFC 1123 names, as Kubernetes
// demands them). The exact grammar does not matter: the text only has to be harmless.
bool IsKubernetesName(std::string_view name, size_t bytes_max) {
  return !name.empty() && name.size() <= bytes_max &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
         });
}

// Returns the number if it is decimal and at most `max`; nothing for any other text.
std::optional<uint32_t> ParseId(std::string_view text, uint32_t max) {
  uint32_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  if (number > max) return std::nullopt;
  return number;
}

// Adds the devices and cores of `given`; returns false if an id of either kind is not a number.
bool AddDevices(const ::v1::ContainerDevices& given, std::set<uint32_t>& devices,
                std::set<uint32_t>& cores) {
  const bool is_core = given.resource_name() == kCoreResource;
  const bool is_device = std::find(std::begin(kDeviceResources), std::end(kDeviceResources),
                                   given.resource_name()) != std::end(kDeviceResources);
  if (!is_core && !is_device) return true;
  for (const std::string& id : given.device_ids()) {
    // Ids are plain numbers of the node's devices or cores.
    const auto number =
        ParseId(id, is_core ? limits::kPodCoreNumberMax : limits::kPodDeviceNumberMax);
    if (!number) return false;
    (is_core ? cores : devices).insert(*number);
  }
  return true;
}

// Adds a container, unless it has no Neuron device; counts it if it is invalid.
void AddContainer(const ::v1::PodResources& pod, const ::v1::ContainerResources& from,
                  PodAnswer& answer) {
  PodContainer container;
  bool sound = true;
  for (const ::v1::ContainerDevices& given : from.devices()) {
    sound = sound && AddDevices(given, container.devices, container.cores);
  }
  if (sound && container.devices.empty() && container.cores.empty()) return;
  if (!sound || !IsKubernetesName(pod.name(), limits::kPodNameBytesMax) ||
      !IsKubernetesName(pod.namespace_(), limits::kPodNamespaceBytesMax) ||
      !IsKubernetesName(from.name(), limits::kPodContainerNameBytesMax)) {
    ++answer.refused;
    return;
  }
  container.pod = {.pod_namespace = pod.namespace_(), .name = pod.name(), .container = from.name()};
  answer.containers.push_back(std::move(container));
}

}  // namespace

absl::StatusOr<PodAnswer> ReadPodAnswer(const ::v1::ListPodResourcesResponse& answer) {
  const auto pods = static_cast<size_t>(answer.pod_resources_size());
  if (pods > limits::kPodsPerNodeMax) {
    return ResourceExhausted("the kubelet lists {} pods; the limit is {}", pods,
                             limits::kPodsPerNodeMax);
  }
  // Everything is counted before anything is copied, so that an oversized answer costs no memory.
  size_t containers = 0;
  size_t ids = 0;
  for (const ::v1::PodResources& pod : answer.pod_resources()) {
    containers += static_cast<size_t>(pod.containers_size());
    for (const ::v1::ContainerResources& container : pod.containers()) {
      for (const auto& given : container.devices()) {
        ids += 1 + static_cast<size_t>(given.device_ids_size());
      }
    }
  }
  if (containers > limits::kPodContainersMax || ids > limits::kPodDeviceIdsMax) {
    return ResourceExhausted(
        "the kubelet lists {} containers and {} devices; the limits are {} and {}", containers, ids,
        limits::kPodContainersMax, limits::kPodDeviceIdsMax);
  }
  PodAnswer read;
  for (const ::v1::PodResources& pod : answer.pod_resources()) {
    for (const ::v1::ContainerResources& container : pod.containers()) {
      AddContainer(pod, container, read);
    }
  }
  return read;
}

uint32_t CoresPerDevice(const ::v1::AllocatableResourcesResponse& answer) {
  std::set<uint32_t> devices;
  std::set<uint32_t> cores;
  for (const ::v1::ContainerDevices& given : answer.devices()) {
    // An id that is no number makes the ratio unknown rather than wrong.
    if (!AddDevices(given, devices, cores)) return 0;
  }
  if (devices.empty() || cores.empty()) return 0;
  // By the highest numbers, not by counting: unhealthy devices are not listed.
  const uint32_t core_count = *cores.rbegin() + 1;
  const uint32_t device_count = *devices.rbegin() + 1;
  return core_count % device_count == 0 ? core_count / device_count : 0;
}

}  // namespace neurontrace
