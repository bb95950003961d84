// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/rank_evidence.h"
#include "trace/worker_info.h"

namespace neurontrace {

// What an observed communicator call said about one core.
struct CommunicatorFact {
  int64_t g_device_id = -1;    // global rank of the core; negative: not said
  int64_t g_device_count = 0;  // cores in the job; 0: not said
  friend bool operator==(const CommunicatorFact&, const CommunicatorFact&) = default;
};

// The operator's explicit word, with the meaning of the vendor's --collectives-worker-start-id,
// --collectives-workers-per-node and --collectives-worker-count: a "worker" there is one core, and
// core number n of this node (counted over all its processes) has rank worker_start_id + n.
struct ConfiguredRanks {
  std::optional<int64_t> worker_start_id;   // default 0
  std::optional<int64_t> workers_per_node;  // cores of this node that take part
  std::optional<int64_t> worker_count;      // cores of the whole job
  bool any() const { return worker_start_id || workers_per_node || worker_count; }
};

// Everything that is known about one worker process and that can tell its ranks.
struct RankFacts {
  std::map<std::string, std::string, std::less<>> environment;
  std::map<uint32_t, CommunicatorFact> communicators;  // by nc_idx
  std::map<uint32_t, int64_t> event_gids;              // worker_gid >= 0 of events, by nc_idx
  uint32_t visible_cores = 0;    // logical cores of the process; 0: not known yet
  uint32_t local_ordinal = 0;    // of this process among the node's workers, in order of arrival
  uint32_t workers_on_node = 1;  // this one included; same job as far as that is known
  ConfiguredRanks configured;
};

struct RankResolution {
  std::vector<CoreInfo> cores;  // by nc_idx; evidence best first
  std::vector<std::string> warnings;
};

// Weighs the evidence, in the order of RankSource. A pure function: called again whenever a fact
// changes, it gives the whole answer anew, so that better evidence that comes late replaces what
// was thought before. Malformed and contradictory input never fails; it costs that piece of
// evidence and says so in `warnings`.
//
// `cores` holds the visible cores, and any further core that a communicator call or an event named.
// What counts processes (RANK, MPI, Slurm) is multiplied by the visible cores of this process, on
// the understanding that all processes of a job have the same number.
RankResolution ResolveRanks(const RankFacts& facts);

}  // namespace neurontrace
