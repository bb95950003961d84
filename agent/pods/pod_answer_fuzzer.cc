// SPDX-License-Identifier: Apache-2.0
// Whatever a kubelet answers, and whatever is in a process's cgroup file: what is taken from it
// is within its limits and holds no character that a name of Kubernetes has not.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "agent/pods/pod_answer.h"
#include "agent/pods/process_evidence.h"
#include "lib/trace/pod_limits.h"

namespace {

// Of texts that are no UTF-8 protobuf would write a line each.
[[maybe_unused]] const auto kQuiet = google::protobuf::SetLogHandler(nullptr);

void CheckName(std::string_view name, size_t bytes_max) {
  const bool good =
      !name.empty() && name.size() <= bytes_max &&
      std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
      });
  if (!good) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string uid = PodUidOf(text);
  const bool is_uid = std::all_of(uid.begin(), uid.end(), [](char c) {
    return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9') || c == '-';
  });
  if (!is_uid) std::abort();

  ::v1::ListPodResourcesResponse answer;
  if (size <= limits::kPodResourcesBytesMax &&
      answer.ParseFromArray(data, static_cast<int>(size))) {
    const auto pods = ReadPodAnswer(answer);
    if (!pods.ok()) return 0;
    if (pods->containers.size() > limits::kPodContainersMax) std::abort();
    for (const PodContainer& container : pods->containers) {
      CheckName(container.pod.pod_namespace, limits::kPodNamespaceBytesMax);
      CheckName(container.pod.name, limits::kPodNameBytesMax);
      CheckName(container.pod.container, limits::kPodContainerNameBytesMax);
      if (container.devices.empty() && container.cores.empty()) std::abort();
    }
  }
  ::v1::AllocatableResourcesResponse allocatable;
  if (allocatable.ParseFromArray(data, static_cast<int>(size))) CoresPerDevice(allocatable);
  return 0;
}
