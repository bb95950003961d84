// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"

namespace neurontrace {

// Identifies the groups that meet in one job, from the ids of collectives. No public source defines
// `gid`: it is taken for the rank of the core that reports it until that is contradicted, as in
// CommunicatorTable. From then on it is the number of a group. Used by one thread at a time.
class GroupIds {
 public:
  // Returns the group of a collective, as in InsightEvent::group; 0: the whole job. `core` is the
  // core that reports it, `worker_gid` its rank, -1 if unknown.
  uint64_t Of(uint32_t core, int64_t worker_gid, std::optional<uint64_t> gid,
              std::optional<uint64_t> stream_id);

 private:
  // Compares an id with those of before.
  void Learn(uint32_t core, int64_t worker_gid, uint64_t gid);

  bool is_group_ = false;  // gid is the number of a group
  absl::flat_hash_map<uint64_t, uint32_t> core_of_gid_;
  absl::flat_hash_map<uint32_t, uint64_t> gid_of_core_;
};

}  // namespace neurontrace
