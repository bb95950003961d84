// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"

namespace neurontrace {

// Finalizer of MurmurHash3, so that neighbouring ids do not collide in tables. Equal captures get
// equal hashes in every process.
uint64_t MixBits(uint64_t value);

// For hashes: 0 means that nothing is known, or the whole job.
inline uint64_t NonZero(uint64_t hash) { return hash == 0 ? 1 : hash; }

// Identifies the groups that meet in one job, from the ids of their events, for stored and running
// captures. No public source defines `gid`: it is taken for the rank of the core that reports it
// until that is contradicted, as in CommunicatorTable. From then on it is the number of a group.
// Used by one thread at a time.
class GroupIds {
 public:
  // What an event of a collective or a barrier reports. A plain value.
  struct Reported {
    uint32_t core = 0;        // that reports it
    int64_t worker_gid = -1;  // the core's rank; -1: unknown
    std::optional<uint64_t> gid;
    std::optional<uint64_t> stream_id;
    std::optional<uint64_t> peer;  // the rank of the other one, if two cores meet alone
  };
  // Returns the group, as in InsightEvent::group; 0: the whole job.
  uint64_t Of(const Reported& ids);

 private:
  // Compares an id with those of before.
  void Learn(const Reported& ids);

  bool is_group_ = false;  // gid is the number of a group
  absl::flat_hash_map<uint64_t, uint32_t> core_of_gid_;
  absl::flat_hash_map<uint32_t, uint64_t> gid_of_core_;
};

}  // namespace neurontrace
