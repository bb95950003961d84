// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace::cli {

// Returns "0-3,40"; "-" for none.
std::string FormatRanks(const std::set<int64_t>& worker_gids);

// Returns a table with a line for each job: how many of its ranks are present, unknown, and claimed
// twice; with `with_events` also its stored and lost events. "" without jobs; a job without a
// worker that has the tap has no line. `columns` as in FormatTable.
std::string FormatJobRanks(const google::protobuf::RepeatedPtrField<v1::JobRanks>& jobs,
                           bool with_events, size_t columns = 0);
// Returns "32 of 64", "32" if the total is unknown, or "-".
std::string FormatRanksSeen(const v1::JobRanks& job);
// Returns "llama", "4711, llama" if one communicator has workers of both, or "-".
std::string FormatJobNames(const v1::JobRanks& job);
// Returns whether the ranks of one of the jobs are unreliable.
bool HasConflict(const google::protobuf::RepeatedPtrField<v1::JobRanks>& jobs);

// The worker_gids and jobs of workers, as far as they are known. Filled from a list of workers, a
// capture, or both, and then used by every table with workers. One thread.
class WorkerRanks {
 public:
  // Records the best known rank of each core.
  void Take(const v1::ListWorkersReply& reply);
  // Records the ranks of its certificate or its streams, which use what is known now, in place of
  // earlier ones. Only a capture that was requested by itself has them.
  void Take(const v1::Capture& capture);

  // Returns a worker's ranks as FormatRanks does.
  std::string Format(const v1::WorkerIdentity& worker) const;
  // Returns whether anything was recorded about the worker.
  bool Knows(const v1::WorkerIdentity& worker) const { return jobs_.contains(KeyOf(worker)); }
  // Returns the job key; "" if it is unknown.
  std::string JobOf(const v1::WorkerIdentity& worker) const;
  // Returns whether the capture's workers belong to more than one job, so that a table has to name
  // them.
  bool AreOfSeveralJobs(const v1::Capture& capture) const;

  // The order in which workers are listed: framework sources last, by job, by lowest rank (workers
  // without one last), by instance and process.
  using Place = std::tuple<bool, std::string, int64_t, std::string, uint32_t>;
  // Returns the sort key of a worker.
  Place PlaceOf(const v1::CaptureWorkerStatus& worker) const;

 private:
  // Instance, boot, pid, start time: a pid alone may be used again.
  using Key = std::tuple<std::string, std::string, uint32_t, uint64_t>;
  static Key KeyOf(const v1::WorkerIdentity& worker);

  std::map<Key, std::set<int64_t>> ranks_;
  std::map<Key, std::string> jobs_;
};

}  // namespace neurontrace::cli
