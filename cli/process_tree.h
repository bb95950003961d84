// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/host_view.h"

namespace neurontrace::cli {

// One process as /proc shows it.
struct ProcessSeen {
  uint32_t pid = 0;
  std::string name;          // its program, without the directory, fit for a terminal
  bool has_runtime = false;  // libnrt.so is mapped
  std::string runtime;       // the file of it, with all symbolic links followed
  bool has_tap = false;
};

// What of a command's processes has been seen, each of them at some moments of its life. One
// thread.
class ProcessTree {
 public:
  ProcessTree(HostView& host, std::string proc, uint32_t root)
      : host_(host), proc_(std::move(proc)), root_(root) {}

  // Looks at the command's process and all that descend from it now. Reads each one's maps, which
  // makes that process wait for a moment where it maps memory just then: look seldom.
  void Look();

  // Whether a process is the command's, or descends from it.
  bool Has(uint32_t pid) const;

  uint32_t processes_seen() const { return processes_seen_; }
  bool has_seen_tap() const { return has_seen_tap_; }
  bool has_seen_runtime() const { return has_seen_runtime_; }
  // With the runtime and no tap, as far as was seen; at most a few.
  const std::vector<ProcessSeen>& untapped() const { return untapped_; }

 private:
  void Note(const ProcessSeen& process);

  HostView& host_;
  const std::string proc_;
  const uint32_t root_;
  uint32_t processes_seen_ = 0;  // in the look that saw most
  bool has_seen_tap_ = false;
  bool has_seen_runtime_ = false;
  std::vector<ProcessSeen> untapped_;
};

// All that a process has in /proc/PID/NAME, up to `bytes_max`; empty where it cannot be read.
std::string ReadProcFile(HostView& host, const std::string& path, size_t bytes_max);

// The numbers that name processes in /proc.
std::vector<uint32_t> ListProcesses(HostView& host, const std::string& proc);

// What /proc/PID/maps and /proc/PID/stat say.
ProcessSeen LookAtProcess(HostView& host, const std::string& proc, uint32_t pid);

}  // namespace neurontrace::cli
