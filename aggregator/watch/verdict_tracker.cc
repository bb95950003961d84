// SPDX-License-Identifier: Apache-2.0
#include "aggregator/watch/verdict_tracker.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "aggregator/insight/verdict_text.h"
#include "lib/trace/watch_limits.h"

namespace neurontrace {
namespace {

// Returns for how long judgements must have a verdict until it begins.
uint64_t BeginAfterNs(VerdictKind kind) {
  return kind >= VerdictKind::kHangNotEntered ? limits::kWatchBeginHangNs
                                              : limits::kWatchBeginSlowNs;
}

}  // namespace

bool VerdictTracker::IsKept(Followed& followed, const InsightReport& report,
                            const std::set<uint32_t>& refused, uint64_t passed_ns) {
  if (!followed.has_begun) return false;
  const bool is_undecided = followed.suspects.empty()
                                ? report.cores_judged == 0
                                : std::ranges::all_of(followed.suspects, [&refused](uint32_t core) {
                                    return refused.contains(core);
                                  });
  if (is_undecided) return true;
  followed.absent_ns += passed_ns;
  return followed.absent_ns < limits::kWatchEndNs;
}

VerdictTracker::Changes VerdictTracker::Update(const InsightReport& report,
                                               std::span<const InsightCore> cores,
                                               std::span<const std::string> texts,
                                               uint64_t now_ns) {
  assert(texts.size() == report.verdicts.size());
  assert(now_ns >= judged_ns_);
  const uint64_t passed_ns = now_ns - std::exchange(judged_ns_, now_ns);
  Changes changes;
  current_.clear();
  std::set<std::string> present;
  for (size_t i = 0; i < report.verdicts.size(); ++i) {
    const std::string key = VerdictKey(report.verdicts[i], cores);
    // Two of one place count once.
    if (!present.insert(key).second) continue;
    if (followed_.size() >= limits::kWatchVerdictsMax && !followed_.contains(key)) {
      ++not_followed_;
      continue;
    }
    Followed& followed = followed_.try_emplace(key, Followed{.since_ns = now_ns}).first->second;
    followed.text = texts[i];
    followed.suspects = report.verdicts[i].suspects;
    followed.absent_ns = 0;
    if (!followed.has_begun &&
        now_ns - followed.since_ns >= BeginAfterNs(report.verdicts[i].kind)) {
      followed.has_begun = true;
      changes.began.push_back(i);
    }
    if (followed.has_begun) current_.push_back(i);
  }
  std::set<uint32_t> refused;
  for (const Refusal& refusal : report.refusals) {
    refused.insert(refusal.cores.begin(), refusal.cores.end());
  }
  for (auto entry = followed_.begin(); entry != followed_.end();) {
    const bool is_kept =
        present.contains(entry->first) || IsKept(entry->second, report, refused, passed_ns);
    if (!is_kept && entry->second.has_begun) changes.ended.push_back(entry->second.text);
    entry = is_kept ? std::next(entry) : followed_.erase(entry);
  }
  return changes;
}

}  // namespace neurontrace
