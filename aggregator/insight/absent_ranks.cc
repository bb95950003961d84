// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/absent_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "aggregator/insight/verdict_text.h"
#include "lib/base/clean_text.h"

namespace neurontrace {
namespace {

// Ranges of ranks, and cores without a rank, in one text.
constexpr size_t kNamedMax = 8;

// What is known of the ranks of one job.
struct Attendance {
  uint64_t cores = 0;
  uint32_t world = 0;            // 0: unknown
  std::set<int64_t> present;     // ranks
  std::set<int64_t> silent;      // ranks
  std::set<std::string> places;  // of silent cores without a rank
  bool has_unknown = false;      // a core without a rank
};

// Appends to a list of at most kNamedMax items. Returns false if it is full.
bool AddItem(const std::string& item, size_t& items, std::string& list) {
  if (items++ >= kNamedMax) return false;
  list += (list.empty() ? "" : ", ") + item;
  return true;
}

// Returns the ranks of a world that are not present: "3, 8-11 and 20 more". The world can be of any
// size, as a worker claims it.
std::string AbsentRanges(const std::set<int64_t>& present, uint32_t world, uint64_t absent) {
  std::string list;
  size_t items = 0;
  uint64_t named = 0;
  const auto add = [&](int64_t first, int64_t end) {
    if (first >= end) return true;
    const std::string range =
        end - first == 1 ? fmt::format("{}", first) : fmt::format("{}-{}", first, end - 1);
    if (!AddItem(range, items, list)) return false;
    named += static_cast<uint64_t>(end - first);
    return true;
  };
  int64_t next = 0;
  bool has_room = true;
  for (const int64_t rank : present) {
    if (rank < next || rank >= world) continue;
    has_room = add(next, rank);
    if (!has_room) break;
    next = rank + 1;
  }
  if (has_room) add(next, world);
  if (named < absent) list += fmt::format(" and {} more", absent - named);
  return list;
}

// Returns the silent ranks, then the places of those without a rank.
std::string SilentList(const Attendance& job) {
  std::string list;
  size_t items = 0;
  for (const int64_t rank : job.silent) AddItem(fmt::format("rank {}", rank), items, list);
  for (const std::string& place : job.places) AddItem(place, items, list);
  if (items > kNamedMax) list += fmt::format(" and {} more", items - kNamedMax);
  return list;
}

// Returns the text of the refusal; empty if nobody is absent.
std::string AbsenceText(const std::string& of_job, const Attendance& job, uint64_t& absent) {
  static constexpr std::string_view kUnknown =
      "whether the others wait for them is unknown; record all workers of the job, and check those "
      "of these ranks with neurontrace workers.";
  uint64_t in_world = 0;
  for (const int64_t rank : job.present) in_world += rank < job.world ? 1 : 0;
  if (job.cores < job.world && job.has_unknown) {
    absent = job.world - job.cores;
    return fmt::format("No events of {} of {} ranks{}, some without a known number: {}", absent,
                       job.world, of_job, kUnknown);
  }
  // Ranks and not cores: a rank that two cores claim would hide an absent one.
  if (!job.has_unknown && job.present.size() < job.world) {
    absent = job.world - in_world;
    return fmt::format("No events of {} of {} ranks{}, {}: {}", absent, job.world, of_job,
                       AbsentRanges(job.present, job.world, absent), kUnknown);
  }
  absent = job.silent.size() + job.places.size();
  if (absent == 0) return "";
  return fmt::format("No events of {}{}: {}", SilentList(job), of_job, kUnknown);
}

}  // namespace

std::vector<Refusal> FindAbsentRanks(std::span<const InsightCore> cores,
                                     std::span<const InsightCore> silent) {
  std::map<std::string_view, Attendance> jobs;
  for (const InsightCore& core : cores) {
    Attendance& job = jobs[core.job];
    ++job.cores;
    job.world = std::max(job.world, core.world_size);
    job.has_unknown |= core.worker_gid < 0;
    if (core.worker_gid >= 0) job.present.insert(core.worker_gid);
  }
  for (const InsightCore& core : silent) {
    Attendance& job = jobs[core.job];
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
    const std::string of_job =
        name.empty() ? "" : fmt::format(" of job {}", CleanText(name, kInsightNameBytesMax));
    Refusal refusal{.reason = RefusalReason::kCoverage};
    refusal.missing = AbsenceText(of_job, job, refusal.count);
    if (!refusal.missing.empty()) refusals.push_back(std::move(refusal));
  }
  return refusals;
}

}  // namespace neurontrace
