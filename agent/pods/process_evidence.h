// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "agent/source/neuron/tap/peer_identity.h"

namespace neurontrace {

// A process whose id is the kernel's word.
struct PodProcess {
  uint32_t pid = 0;
  uint64_t start_time_ticks = 0;
  friend auto operator<=>(const PodProcess&, const PodProcess&) = default;
};

// What tells the pod of a process, as the kernel has it.
struct ProcessEvidence {
  std::string pod_uid;             // empty: it is in no pod
  std::set<uint32_t> devices;      // Neuron devices that it has open
  bool files_are_readable = true;  // else nothing is known of devices
  friend bool operator==(const ProcessEvidence&, const ProcessEvidence&) = default;
};

// The UID of the pod in whose control group a process is, by PID/cgroup: with dashes, as Kubernetes
// writes it; empty for none. Both versions of control groups, both of the kubelet's drivers, and
// paths as a process in another namespace sees them. The outermost group counts, as a container can
// make groups of any name inside its own. Pure.
std::string PodUidOf(std::string_view cgroup);

// Reads evidence from a proc file system (another directory in tests). From any thread.
class ProcessReader {
 public:
  explicit ProcessReader(std::string proc_root = "/proc");

  // The major number of the Neuron driver's devices, whose minor numbers are the devices' own;
  // nothing where the driver is not loaded.
  std::optional<uint32_t> NeuronMajor() const;
  // Nothing if the process is gone, another one has its number, or it is not to be seen.
  std::optional<ProcessEvidence> Read(const PodProcess& process,
                                      std::optional<uint32_t> neuron_major) const;

 private:
  void ReadDevices(uint32_t pid, uint32_t neuron_major, ProcessEvidence& evidence) const;

  const std::string root_;
  const ProcFiles files_;
};

}  // namespace neurontrace
