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

// A process as the kernel identifies it. The start time distinguishes processes that have had the
// same pid.
struct PodProcess {
  uint32_t pid = 0;
  uint64_t start_time_ticks = 0;
  friend auto operator<=>(const PodProcess&, const PodProcess&) = default;
};

// The kernel's evidence for the pod of a process. An unprivileged process can forge neither part:
// the control group is the kubelet's, and device numbers are the kernel's.
struct ProcessEvidence {
  std::string pod_uid;             // empty: it is in no pod
  std::set<uint32_t> devices;      // Neuron devices that it has open
  bool files_are_readable = true;  // else nothing is known of devices
  friend bool operator==(const ProcessEvidence&, const ProcessEvidence&) = default;
};

// Returns the UID of the pod in whose control group a process is, given the text of PID/cgroup;
// with dashes, as Kubernetes writes it, or empty if there is none. Understands both versions of
// control groups, both of the kubelet's drivers (cgroupfs and systemd), and paths as a process in
// another namespace sees them. The outermost group counts, as a container can create groups of any
// name inside its own. Pure.
std::string PodUidOf(std::string_view cgroup);

// Reads evidence from a proc file system; tests give another directory. Any thread.
class ProcessReader {
 public:
  explicit ProcessReader(std::string proc_root = "/proc");

  // Returns the major number of the Neuron driver's devices, whose minor numbers are the devices'
  // indexes; nothing if the driver is not loaded. Read at each look, since the driver may be loaded
  // later.
  std::optional<uint32_t> NeuronMajor() const;
  // Returns nothing if the process is gone, if its pid belongs to another process by now, or if it
  // is not visible.
  std::optional<ProcessEvidence> Read(const PodProcess& process,
                                      std::optional<uint32_t> neuron_major) const;

 private:
  // Adds the minor numbers of the driver's devices among the first limits::kPodOpenFilesMax open
  // files.
  void ReadDevices(uint32_t pid, uint32_t neuron_major, ProcessEvidence& evidence) const;

  const std::string root_;
  const ProcFiles files_;
};

}  // namespace neurontrace
