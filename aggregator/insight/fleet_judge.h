// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "aggregator/insight/fleet_finder.h"
#include "aggregator/insight/insight_report.h"
#include "aggregator/insight/judge_input.h"
#include "aggregator/insight/role_judge.h"

namespace neurontrace {

// Makes the verdicts about slow cores of one fleet: who is a candidate, what candidates have in
// common, and which kind that is. Lives for one judgement; `input`, `fleet` and `refusals` must
// outlive it. Used by one thread at a time.
class FleetJudge {
 public:
  FleetJudge(const JudgeInput& input, const Fleet& fleet, RefusalList& refusals);

  // Adds verdicts to the report, and the waits of this fleet if they are the largest so far.
  // Called once.
  void Judge(InsightReport& report);

 private:
  // Candidates with one cause.
  struct Suspects {
    VerdictKind kind = VerdictKind::kSlowCore;
    std::vector<SlowCore> cores;  // ascending
    double excess_ns = 0;
    const SlowCore& slowest() const;
  };

  // Refuses roles that nobody can be named in. Returns true if candidates are to be looked for.
  bool CanJudge(const RoleJudge& role);
  std::vector<SlowCore> FindCandidates(size_t role);
  // Joins the candidates of an instance, then those of a process.
  std::vector<Suspects> JoinCandidates(const std::vector<SlowCore>& candidates) const;
  VerdictKind KindOf(const std::vector<SlowCore>& cores, bool is_instance) const;
  void RefuseUnexplained(const RoleJudge& role, std::vector<SlowCore>& candidates);
  void RefuseIndistinct(std::vector<Suspects>& suspects);
  Verdict Describe(const Suspects& suspects) const;
  // Returns the models, except the largest, whose executions are slow on this core.
  std::vector<VerdictModel> OtherModels(const SlowCore& slow) const;
  void FindCollective(const RoleJudge& role, Verdict& verdict) const;
  void FindUnevenRoles(InsightReport& report) const;
  void FindUnevenData(InsightReport& report);
  void AddSums(InsightReport& report) const;

  const JudgeInput& input_;
  const Fleet& fleet_;
  RefusalList& refusals_;
  std::vector<RoleJudge> roles_;
  double explained_ns_ = 0;  // of the role that waits most
};

}  // namespace neurontrace
