// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/trace/rank_facts.h"

namespace neurontrace {

// The operator's explicit configuration, with the meaning of the vendor's
// --collectives-worker-start-id, --collectives-workers-per-node and --collectives-worker-count: a
// "worker" there is one core, and core number n of this node, counted over all its processes, has
// rank worker_start_id + n.
struct ConfiguredRanks {
  std::optional<int64_t> worker_start_id;   // default 0
  std::optional<int64_t> workers_per_node;  // cores of this node that take part
  std::optional<int64_t> worker_count;      // cores of the whole job
  bool any() const { return worker_start_id || workers_per_node || worker_count; }
};

// Weighs the evidence for the ranks of all workers of a node, in the order of RankSource, and
// returns one answer for each of `workers`, in their order. docs/user/ranks.md describes the rules.
//
// Pure and without memory: called again whenever a fact changes, it returns the complete answer, so
// that better evidence that arrives late replaces what was concluded before. Malformed and
// contradictory input never fails; it invalidates that piece of evidence, and `warnings` has the
// reason. The cost is quadratic in the workers of one job.
//
// `cores` of a result has the visible cores, and any further core that a communicator call or an
// event named.
//
// Workers of one user and job that ran at the same time are compared. If two of them have the same
// index from one launcher, or the same core of the node, neither has a claim from that source.
// Claims that two workers make nevertheless, and claims of different sizes for one world, are
// marked contradicted. Workers that name no job are compared if they are in one container, have the
// same MASTER_ADDR and MASTER_PORT, and neither has as many cores as its world.
std::vector<RankResolution> ResolveNode(std::span<const RankFacts> workers,
                                        const ConfiguredRanks& configured);

}  // namespace neurontrace
