// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace neurontrace {

// The source of a claimed worker_gid, best first: the lower value wins. Values are on the wire and
// equal those of neurontrace.v1.RankSource: never change one. docs/user/ranks.md describes each
// source.
enum class RankSource : uint8_t {
  kUnspecified = 0,
  kCommunicator = 1,
  kEvent = 2,
  kPjrt = 3,
  kGlobalDeviceId = 4,
  kTorchrun = 5,
  kConfigured = 6,
  kMpi = 7,
  kSlurm = 8,
  kFrameworkFile = 9,
};

// One claim about the global rank of one core. A plain value.
struct RankEvidence {
  RankSource source = RankSource::kUnspecified;
  int64_t worker_gid = 0;  // >= 0
  int64_t world_size = 0;  // cores in the whole job; 0 where unknown
  std::string detail;      // what was seen, for people
  // Rests on an assumption, such as equal core counts or the order of start. `detail` names it.
  bool guessed = false;
  // Another source or another worker claims otherwise, and no rule settles which is right.
  bool contradicted = false;

  friend bool operator==(const RankEvidence&, const RankEvidence&) = default;
};

// Returns the best claim, or nullptr if there is none. Of two from the same source the first is
// returned.
inline const RankEvidence* BestEvidence(const std::vector<RankEvidence>& evidence) {
  const auto best =
      std::min_element(evidence.begin(), evidence.end(),
                       [](const auto& a, const auto& b) { return a.source < b.source; });
  return best == evidence.end() ? nullptr : &*best;
}

}  // namespace neurontrace
