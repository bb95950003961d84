// SPDX-License-Identifier: Apache-2.0
#include "cli/worker_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/certificate_view.h"
#include "cli/text.h"

namespace neurontrace::cli {

std::string FormatRanks(const std::set<int64_t>& worker_gids) {
  std::string text;
  for (auto it = worker_gids.begin(); it != worker_gids.end();) {
    const int64_t first = *it;
    int64_t last = first;
    for (++it; it != worker_gids.end() && *it == last + 1; ++it) last = *it;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (last > first) text += fmt::format("-{}", last);
  }
  return text.empty() ? "-" : text;
}

// The boot id is included because a pid and start time may repeat after a reboot.
WorkerRanks::Key WorkerRanks::KeyOf(const v1::WorkerIdentity& worker) {
  return {worker.instance_id(), worker.boot_id(), worker.pid(), worker.start_time_ticks()};
}

void WorkerRanks::Take(const v1::ListWorkersReply& reply) {
  for (const v1::WorkerInventory& worker : reply.workers()) {
    jobs_[KeyOf(worker.identity())] = worker.job();
    for (const v1::CoreInventory& core : worker.cores()) {
      // Evidence is sorted, the best first.
      if (core.rank_evidence().empty()) continue;
      ranks_[KeyOf(worker.identity())].insert(core.rank_evidence(0).worker_gid());
    }
  }
}

void WorkerRanks::Take(const v1::Capture& capture) {
  // A certificate has the final ranks, so that streams are used only without one.
  if (capture.certificate().workers_size() > 0) {
    for (const v1::WorkerCertificate& worker : capture.certificate().workers()) {
      if (worker.framework()) continue;
      jobs_[KeyOf(worker.worker())] = worker.job();
      ranks_[KeyOf(worker.worker())] = {worker.worker_gids().begin(), worker.worker_gids().end()};
    }
    return;
  }
  for (const v1::CaptureStream& stream : capture.streams()) {
    // A negative number means that the rank is unknown.
    if (stream.worker_gid() < 0) continue;
    ranks_[KeyOf(stream.identity().worker())].insert(stream.worker_gid());
  }
}

std::string WorkerRanks::Format(const v1::WorkerIdentity& worker) const {
  const auto known = ranks_.find(KeyOf(worker));
  return known == ranks_.end() ? "-" : FormatRanks(known->second);
}

std::string WorkerRanks::JobOf(const v1::WorkerIdentity& worker) const {
  const auto known = jobs_.find(KeyOf(worker));
  return known == jobs_.end() ? "" : known->second;
}

bool WorkerRanks::AreOfSeveralJobs(const v1::Capture& capture) const {
  std::set<std::string> jobs;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    const std::string job = JobOf(worker.worker());
    if (!worker.framework() && !job.empty()) jobs.insert(job);
  }
  return jobs.size() > 1;
}

WorkerRanks::Place WorkerRanks::PlaceOf(const v1::CaptureWorkerStatus& worker) const {
  const auto known = ranks_.find(KeyOf(worker.worker()));
  const bool has_rank = known != ranks_.end() && !known->second.empty();
  return {worker.framework(), JobOf(worker.worker()), has_rank ? *known->second.begin() : INT64_MAX,
          worker.worker().instance_id(), worker.worker().pid()};
}

std::string FormatRanksSeen(const v1::JobRanks& job) {
  if (job.world_size() > 0) return fmt::format("{} of {}", job.ranks_seen(), job.world_size());
  return job.ranks_seen() == 0 ? "-" : std::to_string(job.ranks_seen());
}

std::string FormatJobNames(const v1::JobRanks& job) {
  std::string text = job.job().empty() ? "-" : job.job();
  for (const std::string& name : job.other_names()) text += ", " + name;
  return text;
}

std::string FormatJobRanks(const google::protobuf::RepeatedPtrField<v1::JobRanks>& jobs,
                           bool with_events, size_t columns) {
  std::vector<std::string> header = {"JOB",     "WORKERS", "CORES",       "RANKS SEEN",
                                     "UNKNOWN", "TWICE",   "CONTRADICTED"};
  // The column for guesses appears only if there are some, as few fleets have any.
  const bool with_guesses = std::any_of(
      jobs.begin(), jobs.end(), [](const v1::JobRanks& job) { return job.cores_guessed() > 0; });
  if (with_guesses) header.push_back("GUESSED");
  if (with_events) header.insert(header.end(), {"EVENTS", "LOST"});
  std::vector<std::vector<std::string>> rows;
  for (const v1::JobRanks& job : jobs) {
    if (job.workers() == 0) continue;
    std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{
        FormatJobNames(job), FormatCount(job.workers()), FormatCount(job.cores()),
        FormatRanksSeen(job), FormatCount(job.cores_without_rank()),
        FormatCount(job.disputes_count()), FormatCount(job.cores_contradicted())});
    if (with_guesses) row.push_back(FormatCount(job.cores_guessed()));
    if (!with_events) continue;
    row.push_back(FormatCount(job.account().stored()));
    row.push_back(FormatLost(job.account()));
  }
  return rows.empty() ? "" : FormatTable(header, rows, columns);
}

bool HasConflict(const google::protobuf::RepeatedPtrField<v1::JobRanks>& jobs) {
  return std::any_of(jobs.begin(), jobs.end(),
                     [](const v1::JobRanks& job) { return job.has_conflict(); });
}

}  // namespace neurontrace::cli
