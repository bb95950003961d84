// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "aggregator/certificate/certificate.h"
#include "trace/rank_evidence.h"

namespace neurontrace {

// Gathers which ranks the cores of each job have and how many there must be, and names those that
// nobody has. A plain value.
class RankCensus {
 public:
  // A core that took part, or one that was there; the latter count only for jobs that took part.
  void AddParticipant(const std::string& job, const std::vector<RankEvidence>& evidence);
  void AddBystander(const std::string& job, const std::vector<RankEvidence>& evidence);

  // Jobs with ranks that nobody has, by name.
  std::vector<MissingRanks> Missing() const;

 private:
  struct Job {
    bool took_part = false;
    std::set<int64_t> world_sizes;  // that participants claim
    std::set<int64_t> gids;
  };
  std::map<std::string, Job> jobs_;
};

// "4-7, 9".
std::string ToString(const std::vector<RankRange>& ranges);
std::vector<RankRange> RangesOf(const std::vector<int64_t>& ascending);

}  // namespace neurontrace
