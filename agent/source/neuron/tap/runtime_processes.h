// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/source/neuron/tap/job_facts.h"

namespace neurontrace {

// Finds the processes of this node that have the Neuron runtime's library mapped, in a proc file
// system (tests give another directory), without their cooperation. What it reads was written by
// others and is bounded; processes that the agent may not inspect are not found. Used by one thread
// at a time.
//
// Works in rounds, and each round in short steps, so that others on the thread are not kept
// waiting. A process is examined again after kRescanMinNs, with a doubling delay while its address
// space keeps its size, up to kRescanMaxNs; a process without an address space (a kernel thread)
// always after kRescanMaxNs. Its mappings are read again only when that size changed, and, once it
// has a tap, only when exec has replaced its program.
class RuntimeProcesses {
 public:
  static constexpr uint64_t kRescanMinNs = 4'000'000'000;
  static constexpr uint64_t kRescanMaxNs = 64'000'000'000;
  // Processes remembered; further ones are not looked at.
  static constexpr size_t kProcessesMax = 65'536;
  // Limit of one process's list of mappings; what follows is not examined.
  static constexpr size_t kMapsBytesMax = size_t{4} << 20;
  // Limits of one step.
  static constexpr size_t kScanBytes = size_t{512} << 10;
  static constexpr size_t kScanProcesses = 256;

  // A process that has the runtime's library mapped.
  struct Process {
    uint32_t pid = 0;
    uint64_t start_time_ticks = 0;
    bool has_tap = false;  // the tap's library is mapped, too
    // Complete rounds in which it was found, in a row.
    uint32_t rounds = 0;
    friend bool operator==(const Process&, const Process&) = default;
  };

  explicit RuntimeProcesses(std::string proc_root) : root_(std::move(proc_root)) {}

  // Continues the current round, or begins one. Returns true when the round is over.
  bool Poll(uint64_t now_ns);
  // Returns one process for each family that uses the runtime, by pid. A process for which
  // `has_worker` (pid, start time) is true represents its whole family, helpers that it started and
  // launchers that started it; such families are left out. Otherwise the eldest represents it.
  std::vector<Process> Find(const std::function<bool(uint32_t, uint64_t)>& has_worker) const;

  // Returns the processes that started this one, its parent first, as far as they are remembered.
  std::vector<uint32_t> AncestorsOf(uint32_t pid) const;

  // Returns the number of processes that are remembered, with the runtime or without.
  size_t remembered() const { return processes_.size(); }
  // Returns how many lists of mappings were read; the costly part of a round.
  uint64_t lists_read() const { return lists_read_; }

 private:
  // What the last examination of a process found. A pid with another start time is another process.
  struct Seen {
    uint64_t start_time_ticks = 0;
    // Fields of PID/stat: if neither changes, the mappings are not read again.
    uint64_t address_space_bytes = 0;
    uint64_t code_address = 0;
    uint32_t parent = 0;
    // When it is examined again, monotonic, and after which delay.
    uint64_t next_ns = 0;
    uint64_t again_ns = kRescanMinNs;
    // Whether it has the runtime's library mapped, and whether it has the tap's, too.
    bool found = false;
    bool has_tap = false;
    uint32_t rounds = 0;
    // The last round in which it was in the directory; 0: it could not be examined, so it is
    // forgotten when the round ends.
    uint64_t round = 0;
  };

  // The first lists the processes of the node, the second forgets those that are gone.
  void BeginRound();
  void EndRound();
  // Examines one process; returns how many bytes were read.
  size_t Inspect(uint32_t pid, uint64_t now_ns, Seen& seen);
  // Looks for both libraries in the process's mappings; returns how many bytes were read.
  size_t ReadMappings(uint32_t pid, Seen& seen);
  // Calls `visit(pid, Seen&)` for each remembered ancestor, the parent first.
  template <typename Visit>
  void VisitAncestors(uint32_t pid, Visit visit) const;

  const std::string root_;
  std::map<uint32_t, Seen> processes_;
  // The pids that this round has still to examine, in descending order: the last one is next.
  std::vector<uint32_t> to_inspect_;
  bool in_round_ = false;
  uint64_t round_ = 0;
  uint64_t lists_read_ = 0;
  // Scratch memory for the contents of files.
  std::string buffer_;
};

// The command line and the environment of a process, which it may have changed.
struct ProcessDescription {
  std::string command;
  // The variables that `wanted` accepts.
  Environment environment;
  // False if the process has no environment or may not be looked into: then nothing is known of it.
  bool has_environment = false;
};
// Reads both. Values longer than a limit are left out. Blocks for the kernel only.
ProcessDescription ReadProcessDescription(const std::string& proc_root, uint32_t pid,
                                          const std::function<bool(std::string_view)>& wanted);

}  // namespace neurontrace
