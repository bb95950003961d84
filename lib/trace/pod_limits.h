// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Limits of the kubelet's pod resources and of reading a worker's process. Beyond one of them the
// kubelet's answer is refused as a whole, and counted, unless a comment states another policy.
namespace neurontrace::limits {

inline constexpr size_t kPodResourcesBytesMax = size_t{4} << 20;  // of one answer
inline constexpr size_t kPodsPerNodeMax = 4'096;
inline constexpr size_t kPodContainersMax = 16'384;  // of all pods
inline constexpr size_t kPodDeviceIdsMax = 131'072;  // of all containers
// Lengths of names in Kubernetes, and highest numbers of devices and cores. A container beyond one
// of them is skipped, and counted.
inline constexpr size_t kPodNameBytesMax = 253;
inline constexpr size_t kPodNamespaceBytesMax = 63;
inline constexpr size_t kPodContainerNameBytesMax = 63;
inline constexpr uint32_t kPodDeviceNumberMax = 1'023;
inline constexpr uint32_t kPodCoreNumberMax = 16'383;

// The timeout of one request to the kubelet, the shortest time between two, and the longest while
// requests return nothing new.
inline constexpr uint64_t kPodResourcesPatienceNs = 2'000'000'000;
inline constexpr uint64_t kPodResourcesAskMinNs = 3'000'000'000;
inline constexpr uint64_t kPodResourcesAskMaxNs = 60'000'000'000;
static_assert(kPodResourcesPatienceNs < kPodResourcesAskMinNs);

// A worker's process: bytes of one file of /proc, and open files. The rest is not read.
inline constexpr size_t kPodProcFileBytesMax = size_t{64} << 10;
inline constexpr size_t kPodOpenFilesMax = 16'384;

}  // namespace neurontrace::limits
