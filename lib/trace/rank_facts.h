// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/trace/worker_info.h"

namespace neurontrace {

// The arguments of an observed communicator call about one core.
struct CommunicatorFact {
  int64_t g_device_id = -1;    // global rank of the core; negative: not given
  int64_t g_device_count = 0;  // cores in the job; 0: not given
  friend bool operator==(const CommunicatorFact&, const CommunicatorFact&) = default;
};

// Everything known about one worker process from which its ranks can be derived. All of it is
// claimed by the worker, except for fields marked as from the kernel. A plain value.
struct RankFacts {
  uint32_t pid = 0;
  uint64_t start_time_ticks = 0;    // in 1/100 s since boot
  std::vector<uint32_t> ancestors;  // pids of its parent, grandparent and so on, by the kernel
  std::optional<uint32_t> user;     // by the kernel
  std::string container_id;         // by the kernel; empty: none, or not known
  std::string job;                  // empty where nothing names one
  // The variables of its environment that tap/worker_facts.cc lists.
  std::map<std::string, std::string, std::less<>> environment;
  std::map<uint32_t, CommunicatorFact> communicators;  // by nc_idx
  std::map<uint32_t, int64_t> event_gids;              // worker_gid >= 0 of events, by nc_idx
  uint32_t visible_cores = 0;  // logical cores of the process; 0: not known yet

  // When the agent learned of the process and when it ended, by CLOCK_MONOTONIC. A process that has
  // ended still contradicts the ones that it ran beside.
  uint64_t arrived_ns = 0;
  std::optional<uint64_t> ended_ns;

  // The place that RankResolution gave it before, perhaps to an earlier agent. Kept where the
  // worker could change it, so it is checked.
  std::optional<uint32_t> first_node_core;
  // False while workers that already have a place may still be missing: no new places are given.
  bool may_be_placed = true;
};

// The ranks of one process as its agent derives them from all processes of the node.
struct RankResolution {
  std::vector<CoreInfo> cores;  // by nc_idx; evidence best first
  std::vector<std::string> warnings;
  // The warnings that put a rank in doubt which is claimed nevertheless.
  std::vector<std::string> contradictions;
  // The assumptions on which claimed ranks rest.
  std::vector<std::string> guesses;
  // The number of the process's first core among all cores that the node's workers of this job use,
  // in the order in which they started. Stays the same for the life of the process.
  std::optional<uint32_t> first_node_core;
};

// Returns whether the two processes ran at the same time for at least a second. A shorter overlap
// may come from the delay with which the agent learns of an end.
inline bool RanTogether(const RankFacts& a, const RankFacts& b) {
  constexpr uint64_t kTogetherMinNs = 1'000'000'000;
  if (&a == &b) return true;
  const auto outlived = [](const RankFacts& one, const RankFacts& other) {
    return !one.ended_ns || *one.ended_ns >= other.arrived_ns + kTogetherMinNs;
  };
  return outlived(a, b) && outlived(b, a);
}

}  // namespace neurontrace
