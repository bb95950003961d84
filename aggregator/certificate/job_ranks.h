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

// One core with what is known of its rank and when it had events.
struct RankedCore {
  StreamIdentity stream;
  std::vector<RankEvidence> evidence;  // as of the newest resolution; empty: no claim
  uint64_t first_ns = 0;               // beyond last_ns: it had none, and disputes no rank
  uint64_t last_ns = UINT64_MAX;
  bool is_forgotten = false;  // the inventory does not know its worker, nor its job, any more
};

// Compares the ranks that the cores of each job claim. Workers belong to one job if they have the
// same job key or the same root of a communicator, or if they name neither and have the same
// MASTER_ADDR and MASTER_PORT; a loopback address counts only within one instance, as every node
// has such an address. Two cores that claim one rank at the same time are a dispute; a worker that
// was restarted is none. Of several workers that name no job, one whose cores are as many as its
// world has is a job of its own, and disputes nothing. A plain value.
class JobRankCensus {
 public:
  // Adds a worker that takes part, or lives: its facts tell which job its cores are of.
  void AddWorker(const WorkerInfo& worker);
  // Adds a core of a worker of this job key; AddWorker comes first where the facts are known.
  void AddCore(const std::string& job, RankedCore core);
  // Counts events for the job that AddCore or AddWorker found for the worker.
  void AddAccount(const WorkerIdentity& worker, const std::string& job,
                  const EventAccount& account);
  // Adds a core that does not take part: its rank counts as seen, for jobs that do.
  void AddBystander(const WorkerInfo& worker, const std::vector<RankEvidence>& evidence);

  // Returns the jobs, by name, the one of workers without a job key first.
  std::vector<JobRanks> Jobs() const;

 private:
  struct Job;
  std::string NodeOf(const WorkerIdentity& worker, const std::string& job);
  std::string Root(std::string node) const;
  void Join(const std::string& a, const std::string& b);
  std::set<WorkerIdentity> WholeWorlds() const;

  std::map<std::string, std::string> parents_;   // nodes: job keys, and roots of communicators
  std::map<WorkerIdentity, std::string> nodes_;  // of workers
  std::map<std::string, std::string> names_;     // the job key that a node is; may be empty
  std::vector<std::pair<std::string, RankedCore>> cores_;
  std::vector<std::pair<std::string, EventAccount>> accounts_;
  std::vector<std::pair<std::string, int64_t>> bystander_gids_;
};

// The whole comparison for workers as they are now.
std::vector<JobRanks> CompareRanks(const std::vector<WorkerInfo>& workers);

// Those with ranks that nobody has.
std::vector<MissingRanks> MissingOf(const std::vector<JobRanks>& jobs);

// Sentences about what is wrong with the ranks of a job, each dispute with its claimants.
std::vector<std::string> DescribeConflicts(const JobRanks& job);

// "4-7, 9".
std::string ToString(const std::vector<RankRange>& ranges);
std::vector<RankRange> RangesOf(const std::vector<int64_t>& ascending);

}  // namespace neurontrace
