// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "aggregator/certificate/certificate.h"
#include "lib/trace/rank_evidence.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// One core with what is known of its rank, and when it had events (raw nanoseconds).
struct RankedCore {
  StreamIdentity stream;
  // As of the newest resolution; empty if it claims no rank.
  std::vector<RankEvidence> evidence;
  // If it is beyond last_ns, the core had no event and disputes no rank.
  uint64_t first_ns = 0;
  uint64_t last_ns = UINT64_MAX;
  // The inventory no longer knows its worker, and so not its job.
  bool is_forgotten = false;
};

// Compares the ranks that the cores of each job claim. Workers belong to one job if they have the
// same job key or the same root of a communicator, or if they name neither and have the same
// MASTER_ADDR and MASTER_PORT. A loopback address counts only within one instance, as every node
// has it.
//
// Two cores that claim one rank at the same time are a dispute; a restarted worker is not. Of
// several workers without a job, one whose cores are as many as its world counts as a job of its
// own and disputes nothing. A plain value without a lock.
class JobRankCensus {
 public:
  // Adds a worker that takes part, or that lives: its facts decide the job of its cores.
  void AddWorker(const WorkerInfo& worker);
  // Adds a core of a worker with this job key. If the worker's facts are known, AddWorker must
  // precede it.
  void AddCore(const std::string& job, RankedCore core);
  // Adds events to the job that AddCore or AddWorker found for the worker.
  void AddAccount(const WorkerIdentity& worker, const std::string& job,
                  const EventAccount& account);
  // Adds a core that does not take part. Its rank counts as seen for jobs that do, so that a
  // partial capture is not accused of missing ranks.
  void AddNonParticipant(const WorkerInfo& worker, const std::vector<RankEvidence>& evidence);

  // Returns the jobs by name; jobs without a key come first.
  std::vector<JobRanks> Jobs() const;

 private:
  struct Job;
  // Returns the worker's node, creating one for its job key.
  std::string NodeOf(const WorkerIdentity& worker, const std::string& job);
  // Returns the representative of the job that a node belongs to; Join makes two nodes one job.
  std::string Root(std::string node) const;
  void Join(const std::string& a, const std::string& b);
  // Returns the workers without a job that are whole worlds among others of the same root.
  std::set<WorkerIdentity> WholeWorlds() const;

  // A forest of disjoint sets over nodes: job keys, and roots of communicators.
  std::map<std::string, std::string> parents_;
  // The node of each worker.
  std::map<WorkerIdentity, std::string> nodes_;
  // The job key of each node; may be empty.
  std::map<std::string, std::string> names_;
  std::vector<std::pair<std::string, RankedCore>> cores_;
  std::vector<std::pair<std::string, EventAccount>> accounts_;
  std::vector<std::pair<std::string, int64_t>> non_participant_gids_;
};

// Returns the whole comparison for workers as they are now. A pure function.
std::vector<JobRanks> CompareRanks(const std::vector<WorkerInfo>& workers);

// Returns the jobs with ranks that nobody has.
std::vector<MissingRanks> MissingOf(const std::vector<JobRanks>& jobs);

// Returns sentences about contradictions among the ranks of a job, each dispute with its claimants.
// Empty unless job.has_conflict().
std::vector<std::string> DescribeConflicts(const JobRanks& job);

}  // namespace neurontrace
