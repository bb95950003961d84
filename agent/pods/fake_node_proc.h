// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "agent/pods/process_evidence.h"
#include "agent/source/neuron/tap/fake_proc.h"

namespace neurontrace {

// For tests: a /proc of processes in pods with Neuron devices open. Devices that every Linux has
// take their part: major 1, and the minors 3 (null), 5 (zero), 7 (full) and 8 (random).
class FakeNodeProc {
 public:
  FakeNodeProc() {
    std::ofstream(proc_.root() + "/devices")
        << "Character devices:\n  4 tty\n  1 neuron\n237 neuron_other\n\nBlock devices:\n  1 "
           "ramdisk\n";
  }

  const std::string& root() const { return proc_.root(); }
  FakeProc& proc() { return proc_; }

  // Adds a process with this PID/cgroup and these files open, and returns its identity.
  PodProcess Put(uint32_t pid, const std::string& cgroup, const std::vector<std::string>& open) {
    proc_.Put({.pid = pid, .start_time_ticks = 100 + pid});
    proc_.Write(pid, "cgroup", cgroup);
    const std::string files = fmt::format("{}/{}/fd", root(), pid);
    std::filesystem::create_directories(files);
    for (size_t i = 0; i < open.size(); ++i) {
      std::filesystem::create_symlink(open[i], fmt::format("{}/{}", files, i));
    }
    return {.pid = pid, .start_time_ticks = 100 + pid};
  }
  // Adds a process to a pod, with the control group named as the systemd driver does.
  PodProcess PutInPod(uint32_t pid, char pod, const std::vector<std::string>& open) {
    return Put(pid,
               fmt::format("0::/kubepods.slice/kubepods-pod{}.slice/cri-containerd-{}.scope\n",
                           Uid(pod, '_'), std::string(64, 'a')),
               open);
  }
  // Returns a UID made of one hexadecimal digit; '_' as `dash` for the systemd driver.
  static std::string Uid(char pod, char dash = '-') {
    return fmt::format("{}{}{}{}{}{}{}{}{}", std::string(8, pod), dash, std::string(4, pod), dash,
                       std::string(4, pod), dash, std::string(4, pod), dash, std::string(12, pod));
  }

 private:
  FakeProc proc_;
};

}  // namespace neurontrace
