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

// "0-3,40"; "-" for none.
std::string FormatRanks(const std::set<int64_t>& worker_gids);

// A table with a line for each job: how many of its ranks are seen, unknown, and claimed twice;
// with `with_events` also what is stored and lost of it. Empty without jobs, and a job without a
// worker that has the tap has no line. `columns` as in FormatTable.
std::string FormatJobRanks(const google::protobuf::RepeatedPtrField<v1::JobRanks>& jobs,
                           bool with_events, size_t columns = 0);
// "32 of 64", "32" where nobody knows how many there are, "-".
std::string FormatRanksSeen(const v1::JobRanks& job);
// "llama", "4711, llama" where one communicator has workers of both, "-".
std::string FormatJobNames(const v1::JobRanks& job);
// Whether the ranks of one of the jobs cannot be relied on.
bool HasConflict(const google::protobuf::RepeatedPtrField<v1::JobRanks>& jobs);

// The worker_gids and jobs of workers, as far as somebody has said them. One thread.
class WorkerRanks {
 public:
  // The best known rank of each core.
  void Take(const v1::ListWorkersReply& reply);
  // Those of its certificate or its streams, which are bound to what is known now, in place of what
  // was taken before. A capture has them only when it was asked for by itself.
  void Take(const v1::Capture& capture);

  std::string Format(const v1::WorkerIdentity& worker) const;
  // Whether anything was taken of it.
  bool Knows(const v1::WorkerIdentity& worker) const { return jobs_.contains(KeyOf(worker)); }
  // The job key; empty where it is not known.
  std::string JobOf(const v1::WorkerIdentity& worker) const;
  // Whether the capture's workers are of more than one job, so that a table has to name them.
  bool AreOfSeveralJobs(const v1::Capture& capture) const;

  // The order in which workers are listed: framework sources last, by job, by lowest rank (workers
  // without one last), by instance and process.
  using Place = std::tuple<bool, std::string, int64_t, std::string, uint32_t>;
  Place PlaceOf(const v1::CaptureWorkerStatus& worker) const;

 private:
  using Key = std::tuple<std::string, std::string, uint32_t, uint64_t>;
  static Key KeyOf(const v1::WorkerIdentity& worker);

  std::map<Key, std::set<int64_t>> ranks_;
  std::map<Key, std::string> jobs_;
};

}  // namespace neurontrace::cli
