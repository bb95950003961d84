// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/absent_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "aggregator/insight/verdict_text.h"
#include "lib/base/clean_text.h"
#include "lib/base/number_ranges.h"

namespace neurontrace {
namespace {

// Cores without a rank in one text.
constexpr size_t kPlacesNamed = 4;

// What is known of the ranks of one job.
struct Attendance {
  bool has_name = true;
  uint64_t cores = 0;
  uint32_t world = 0;            // 0: unknown
  std::set<int64_t> present;     // ranks
  std::set<int64_t> silent;      // ranks
  std::set<std::string> places;  // of silent cores without a rank
  bool has_unknown = false;      // a core without a rank
};

// Returns the ranks of a world that are not present. The world can be of any size, as a worker
// claims it.
std::vector<NumberRange> AbsentRanges(const std::set<int64_t>& present, uint32_t world) {
  std::vector<NumberRange> absent;
  int64_t next = 0;
  for (const int64_t rank : present) {
    if (rank < 0 || rank >= world) continue;
    if (next < rank) absent.push_back({next, rank - 1});
    next = rank + 1;
  }
  if (next < world) absent.push_back({next, int64_t{world} - 1});
  return absent;
}

// Returns the silent ranks, then the places of those without a rank.
std::string SilentList(const Attendance& job) {
  std::vector<std::string> items;
  if (!job.silent.empty()) {
    const std::vector<int64_t> ranks(job.silent.begin(), job.silent.end());
    items.push_back(fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s",
                                FormatRanges(FindRanges(ranks), kInsightRangesMax)));
  }
  const size_t named = std::min(job.places.size(), kPlacesNamed);
  std::copy_n(job.places.begin(), named, std::back_inserter(items));
  std::string list = fmt::format("{}", fmt::join(items, ", "));
  if (job.places.size() > named) {
    list += fmt::format(" and {} more without a rank", job.places.size() - named);
  }
  return list;
}

// Returns " of job llama"; empty if the only job has no name.
std::string JobPhrase(std::string_view name, const Attendance& job) {
  if (!job.has_name) return " of a job without a name";
  if (name.empty()) return "";
  return fmt::format(" of job {}", CleanText(name, kInsightNameBytesMax));
}

// Returns the text of the refusal; empty if nobody is absent.
std::string AbsenceText(const std::string& of_job, const Attendance& job, uint64_t& absent) {
  static constexpr std::string_view kUnknown =
      "it is unknown whether other ranks wait for them; record all workers of the job, and look "
      "for these with neurontrace workers.";
  if (job.cores < job.world && job.has_unknown) {
    absent = job.world - job.cores;
    return fmt::format("No events from {} of {} ranks{} (some cores have no known rank): {}",
                       absent, job.world, of_job, kUnknown);
  }
  // Ranks and not cores: a rank that two cores claim would hide an absent one.
  if (!job.has_unknown && job.present.size() < job.world) {
    uint64_t in_world = 0;
    for (const int64_t rank : job.present) in_world += rank < job.world ? 1 : 0;
    absent = job.world - in_world;
    return fmt::format("No events from {} of {} ranks{} ({}): {}", absent, job.world, of_job,
                       FormatRanges(AbsentRanges(job.present, job.world), kInsightRangesMax),
                       kUnknown);
  }
  absent = job.silent.size() + job.places.size();
  if (absent == 0) return "";
  return fmt::format("No events from {}{}: {}", SilentList(job), of_job, kUnknown);
}

}  // namespace

std::vector<Refusal> FindAbsentRanks(std::span<const InsightCore> cores,
                                     std::span<const InsightCore> silent) {
  std::map<std::string_view, Attendance> jobs;
  for (const InsightCore& core : cores) {
    Attendance& job = jobs[core.job];
    job.has_name = core.has_job_name;
    ++job.cores;
    job.world = std::max(job.world, core.world_size);
    job.has_unknown |= core.worker_gid < 0;
    if (core.worker_gid >= 0) job.present.insert(core.worker_gid);
  }
  for (const InsightCore& core : silent) {
    Attendance& job = jobs[core.job];
    job.has_name = core.has_job_name;
    job.world = std::max(job.world, core.world_size);
    if (core.worker_gid < 0) {
      job.places.insert(
          fmt::format("{} nc {}", CleanText(core.instance_id, kInsightNameBytesMax), core.nc_idx));
    } else if (!job.present.contains(core.worker_gid)) {
      job.silent.insert(core.worker_gid);
    }
  }
  std::vector<Refusal> refusals;
  for (const auto& [name, job] : jobs) {
    Refusal refusal{.reason = RefusalReason::kCoverage};
    refusal.missing = AbsenceText(JobPhrase(name, job), job, refusal.count);
    if (!refusal.missing.empty()) refusals.push_back(std::move(refusal));
  }
  return refusals;
}

}  // namespace neurontrace
