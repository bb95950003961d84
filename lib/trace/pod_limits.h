// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Limits of the kubelet's answers about pods. Beyond: the whole answer is refused, and counted,
// unless stated otherwise.
namespace neurontrace::limits {

inline constexpr size_t kPodResourcesBytesMax = size_t{4} << 20;  // of one answer
inline constexpr size_t kPodsPerNodeMax = 4'096;
inline constexpr size_t kPodContainersMax = 16'384;  // of all pods
inline constexpr size_t kPodDeviceIdsMax = 131'072;  // of all containers
// Names as Kubernetes has them, and numbers of devices and of cores. A container beyond: passed
// over, and counted.
inline constexpr size_t kPodNameBytesMax = 253;
inline constexpr size_t kPodNamespaceBytesMax = 63;
inline constexpr size_t kPodContainerNameBytesMax = 63;
inline constexpr uint32_t kPodDeviceNumberMax = 1'023;
inline constexpr uint32_t kPodCoreNumberMax = 16'383;

// How long one question to the kubelet may take, the least time between two, and the most while
// nothing new comes of asking.
inline constexpr uint64_t kPodResourcesPatienceNs = 2'000'000'000;
inline constexpr uint64_t kPodResourcesAskMinNs = 3'000'000'000;
inline constexpr uint64_t kPodResourcesAskMaxNs = 60'000'000'000;
static_assert(kPodResourcesPatienceNs < kPodResourcesAskMinNs);

// Looking at a worker's process: bytes of one file of /proc, and open files. What is beyond is not
// looked at.
inline constexpr size_t kPodProcFileBytesMax = size_t{64} << 10;
inline constexpr size_t kPodOpenFilesMax = 16'384;

}  // namespace neurontrace::limits
