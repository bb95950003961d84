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
// system (another directory in tests), without asking them. What it reads there was written by
// others and is bounded; processes that this one may not look into are not found. One thread at a
// time.
//
// Works in rounds, and a round in short looks, so that whoever shares the thread is not kept
// waiting. A process is looked at again after kAgainMinNs, and twice as late each time while its
// address space keeps its size, up to kAgainMaxNs; so is one without an address space (a kernel
// thread). What it maps is read again only when that size has changed, and once it has a tap, only
// when another program has taken its place.
class RuntimeProcesses {
 public:
  static constexpr uint64_t kAgainMinNs = 4'000'000'000;
  static constexpr uint64_t kAgainMaxNs = 64'000'000'000;
  // Processes remembered; further ones are not looked at.
  static constexpr size_t kProcessesMax = 65'536;
  // Of one process's list of mappings; what stands behind is not looked at.
  static constexpr size_t kMapsBytesMax = size_t{4} << 20;
  // Of one look.
  static constexpr size_t kLookBytes = size_t{512} << 10;
  static constexpr size_t kLookProcesses = 256;

  struct Process {
    uint32_t pid = 0;
    uint64_t start_time_ticks = 0;
    bool has_tap = false;  // the tap's library is mapped, too
    uint32_t rounds = 0;   // since it was found
    friend bool operator==(const Process&, const Process&) = default;
  };

  explicit RuntimeProcesses(std::string proc_root) : root_(std::move(proc_root)) {}

  // Goes on with the round at hand, or begins one. True when the round is over.
  bool Look(uint64_t now_ns);
  // Those that stand for themselves, by pid: of a family, whoever `has_worker` (pid, start time)
  // speaks for all of it, helpers that it started and launchers that started it alike; else the
  // eldest does.
  std::vector<Process> Find(const std::function<bool(uint32_t, uint64_t)>& has_worker) const;

  // The processes that started this one, its parent first, as far as they are remembered.
  std::vector<uint32_t> AncestorsOf(uint32_t pid) const;

  size_t remembered() const { return processes_.size(); }
  uint64_t lists_read() const { return lists_read_; }  // of mappings

 private:
  struct Seen {
    uint64_t start_time_ticks = 0;
    uint64_t address_space_bytes = 0;
    uint64_t code_address = 0;
    uint32_t parent = 0;
    uint64_t next_ns = 0;
    uint64_t again_ns = kAgainMinNs;
    bool found = false;
    bool has_tap = false;
    uint32_t rounds = 0;
    uint64_t round = 0;  // in which it was there
  };

  void BeginRound();
  void EndRound();
  // Bytes read.
  size_t LookAt(uint32_t pid, uint64_t now_ns, Seen& seen);
  size_t ReadMappings(uint32_t pid, Seen& seen);
  template <typename Visit>
  void VisitAncestors(uint32_t pid, Visit visit) const;

  const std::string root_;
  std::map<uint32_t, Seen> processes_;
  std::vector<uint32_t> to_look_at_;  // in the round at hand, the last first
  bool in_round_ = false;
  uint64_t round_ = 0;
  uint64_t lists_read_ = 0;
  std::string buffer_;
};

// What a process says of itself.
struct ProcessWords {
  std::string command;
  Environment environment;  // those variables that `wanted` names
  // False if the process has no environment or may not be looked into: then nothing is known of it.
  bool has_environment = false;
};
ProcessWords ReadProcessWords(const std::string& proc_root, uint32_t pid,
                              const std::function<bool(std::string_view)>& wanted);

}  // namespace neurontrace
