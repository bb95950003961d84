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
  std::string name;          // of its program, without the directory, cleaned for a terminal
  bool has_runtime = false;  // libnrt.so is mapped
  std::string runtime;       // the file of it, with all symbolic links followed
  bool has_tap = false;
  bool has_xla = false;  // jaxlib or torch_xla is mapped
  // The C library is mapped. The dynamic loader maps preloaded libraries before it, so a process
  // that has it and not the tap will not get the tap any more (ld.so(8), LD_PRELOAD).
  bool has_libc = false;
};

// What was observed of the processes of the command that `record` runs, each at some moments of its
// life. Processes between two looks are missed. One thread.
class ProcessTree {
 public:
  // `host` must outlive it. `root` is the command's process.
  ProcessTree(HostView& host, std::string proc, uint32_t root)
      : host_(host), proc_(std::move(proc)), root_(root) {}

  // Examines the command's process and all of its descendants. Reading a process's maps delays it
  // if it maps memory at that moment, so this should be called seldom.
  void Scan();

  // Returns whether a process is the command's, or descends from it.
  bool Has(uint32_t pid) const;

  // Returns whether a process was seen after its libraries had been loaded. If not, nothing follows
  // from the absence of the tap.
  bool has_seen_loaded() const { return has_seen_loaded_; }
  bool has_seen_tap() const { return has_seen_tap_; }
  bool has_seen_runtime() const { return has_seen_runtime_; }
  // Returns processes with the runtime and without the tap; at most a few.
  const std::vector<ProcessSeen>& untapped() const { return untapped_; }

 private:
  // Adds what one look showed of a process.
  void Record(const ProcessSeen& process);

  HostView& host_;
  const std::string proc_;
  const uint32_t root_;
  bool has_seen_loaded_ = false;
  bool has_seen_tap_ = false;
  bool has_seen_runtime_ = false;
  std::vector<ProcessSeen> untapped_;
};

// Returns the contents of a file in /proc, up to `bytes_max`; "" if it cannot be read.
std::string ReadProcFile(HostView& host, const std::string& path, size_t bytes_max);

// Returns the process ids in `proc`.
std::vector<uint32_t> ListProcesses(HostView& host, const std::string& proc);

// Returns what /proc/PID/maps and /proc/PID/stat show of a process.
ProcessSeen ExamineProcess(HostView& host, const std::string& proc, uint32_t pid);

}  // namespace neurontrace::cli
