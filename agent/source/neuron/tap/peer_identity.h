// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// What the kernel reports about processes, read from a proc file system; tests give another
// directory. Any thread.
class ProcFiles {
 public:
  explicit ProcFiles(std::string root = "/proc") : root_(std::move(root)) {}

  // Returns field 22 of PID/stat (proc_pid_stat(5)), in clock ticks since boot; nothing if the
  // process does not exist or is not visible.
  std::optional<uint64_t> StartTimeTicks(uint32_t pid) const;
  // Returns whether the process that began at this time has not ended. One that ended and that its
  // parent has not waited for yet is still listed, as a zombie.
  bool Lives(uint32_t pid, uint64_t start_time_ticks) const;
  // Returns the pids of the process's parent, grandparent and so on, nearest first, at most
  // kAncestorsMax.
  std::vector<uint32_t> Ancestors(uint32_t pid) const;
  static constexpr size_t kAncestorsMax = 16;
  // Returns the last id of 64 hexadecimal digits in PID/cgroup, as Docker, containerd and CRI-O
  // name a container's group; empty outside containers.
  std::string ContainerId(uint32_t pid) const;
  // Returns PID/maps (proc_pid_maps(5)). Fails with NOT_FOUND or FAILED_PRECONDITION if the kernel
  // does not show it to this agent, or it is longer than RuntimeProcesses::kMapsBytesMax.
  absl::StatusOr<std::string> Mappings(uint32_t pid) const;
  // Returns sys/kernel/random/boot_id.
  std::string BootId() const;

 private:
  // Returns a field of PID/stat behind the program's name, counted from 1; empty if there is none.
  std::string StatText(uint32_t pid, int wanted) const;
  // Returns a field that is a number; nothing if it cannot be read.
  std::optional<uint64_t> StatField(uint32_t pid, int wanted) const;

  std::string root_;
};

// The process at the other end of a tap's connection.
struct PeerIdentity {
  // The pid, and field 22 of its PID/stat: together they name a process for as long as the machine
  // runs.
  uint32_t pid = 0;
  uint64_t start_time_ticks = 0;
  // The id of its container, or "unseen-" and the inode of its memory file; empty: neither.
  std::string container_id;
  // True if the pid, the start time or both are the tap's own claim.
  bool claimed = false;
};

// Identifies the process behind a connection. `kernel_pid` is the pid of SO_PEERCRED: 0 for a
// process in a pid namespace that the agent does not see. In that case the tap's claim is used, and
// since such claims repeat between containers (everybody is pid 1), the inode of its memory file,
// which no other process has, takes the place of the container id.
PeerIdentity IdentifyPeer(const ProcFiles& proc, uint32_t kernel_pid, uint32_t claimed_pid,
                          uint64_t claimed_start_ticks, ino_t buffer_inode);

// Returns whether this identity rests on a claim.
bool IsClaimed(const WorkerIdentity& worker);

}  // namespace neurontrace
