// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/hang_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace neurontrace {
namespace {

using insight_rule::kHangFactor;
using insight_rule::kHangMinNs;
using insight_rule::kHangQuantile;

// By kind, group and op.
using OpenKey = std::tuple<InsightClass, uint64_t, uint64_t>;

struct OpenOperation {
  std::vector<uint32_t> inside;  // ascending
  uint64_t exec_id = 0;          // the latest of those inside
  uint64_t age_ns = 0;           // of the longest
};

class HangJudge {
 public:
  HangJudge(const JudgeInput& input, const Fleet& fleet, RefusalList& refusals)
      : input_(input), fleet_(fleet), refusals_(refusals), limit_ns_(FindLimit()) {
    FindLeft();
  }

  std::vector<Verdict> Judge();

 private:
  // What the members of an operation do.
  struct Members {
    std::vector<uint32_t> failed;  // reported an error
    std::vector<uint32_t> ended;   // process
    std::vector<uint32_t> absent;  // alive, and not inside
    std::vector<uint32_t> silent;  // not inside, and nobody knows more
    size_t count = 0;
    bool has_left = false;      // one has completed what others are in
    bool is_explained = false;  // one waits elsewhere, or has lost events
  };

  // Which execution of an operation a core is in.
  using OpenIn = std::pair<OpenKey, uint64_t>;

  uint64_t FindLimit() const;
  // Fills left_.
  void FindLeft();
  // Returns the key of an open meeting, or nothing of another span.
  static std::optional<OpenKey> KeyOf(const CoreHistory& history, const OpenSpan& open);
  // Returns whether a core has stopped in an operation that others have left, by their ids and by
  // the time: its stop is not seen as nothing is read of the process, and it does not wait there.
  bool HasStoppedIn(uint32_t core, const OpenKey& key, const OpenSpan& open) const;
  uint64_t NowOf(uint32_t core) const {
    return std::max(input_.conditions[core].alive_at_ns, input_.histories[core]->last_event_ns);
  }
  bool HasLost(uint32_t core) const {
    return input_.conditions[core].lost_events > 0 || input_.conditions[core].lost_unknown;
  }
  std::map<OpenKey, OpenOperation> FindOpen() const;
  // Returns nullptr if the core never took part in it.
  const CoreOperation* MembershipOf(uint32_t core, const OpenKey& key) const;
  // False if a rank of the job, or a member that other groups have, is not in the capture.
  bool AreAllMembersKnown(const OpenKey& key, size_t count) const;
  bool WaitsElsewhere(uint32_t core) const;
  bool HasFailed(uint32_t core) const;
  Members ExamineMembers(const OpenKey& key, const OpenOperation& open) const;
  void AddVerdict(const OpenKey& key, const OpenOperation& open, std::vector<Verdict>& verdicts);
  Verdict Describe(VerdictKind kind, std::vector<uint32_t> suspects, const OpenKey& key,
                   const OpenOperation& open) const;
  InsightPhase PhaseOf(uint32_t core) const;

  const JudgeInput& input_;
  const Fleet& fleet_;
  RefusalList& refusals_;
  const uint64_t limit_ns_;
  // How long ago the newest execution began that has completed the operation after the one that
  // somebody is in. By durations of one host each: clocks need not agree.
  std::map<OpenIn, uint64_t> left_;
};

uint64_t HangJudge::FindLimit() const {
  std::array<uint64_t, std::tuple_size_v<decltype(CoreHistory::met_lengths)>> counts = {};
  uint64_t all = 0;
  for (const uint32_t core : fleet_.cores) {
    const auto& lengths = input_.histories[core]->met_lengths;
    for (size_t i = 0; i < counts.size(); ++i) {
      counts[i] += lengths[i];
      all += lengths[i];
    }
  }
  uint64_t below = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    below += counts[i];
    if (static_cast<double>(below) < kHangQuantile * static_cast<double>(all)) continue;
    const uint64_t percentile = uint64_t{250'000'000} << i;  // the bucket's upper end
    // Everything up to 250 ms is below the other limit.
    return i == 0 ? kHangMinNs : std::max(kHangMinNs, kHangFactor * percentile);
  }
  return kHangMinNs;
}

std::optional<OpenKey> HangJudge::KeyOf(const CoreHistory& history, const OpenSpan& open) {
  if (!open.is_used || !IsMeeting(open.kind) || open.group >= history.group_count) {
    return std::nullopt;
  }
  return OpenKey(open.kind, history.groups[open.group], open.op_id);
}

void HangJudge::FindLeft() {
  for (const uint32_t core : fleet_.cores) {
    for (const OpenSpan& open : input_.histories[core]->open) {
      const std::optional<OpenKey> key = KeyOf(*input_.histories[core], open);
      if (key && open.exec_id != 0) left_[{*key, open.exec_id}] = UINT64_MAX;
    }
  }
  for (auto& [in, began_ago_ns] : left_) {
    for (const uint32_t core : fleet_.cores) {
      const CoreHistory& history = *input_.histories[core];
      const CoreOperation* membership = MembershipOf(core, in.first);
      if (membership == nullptr || membership->last_exec_id < in.second) continue;
      if (history.kept() == 0) continue;
      const CoreExecution& latest = history.latest(0);
      const double ago_ns = static_cast<double>(NowOf(core) - std::min(NowOf(core), latest.end_ns));
      const double began_ns = ago_ns + latest.device + latest.met;
      began_ago_ns = std::min(began_ago_ns, static_cast<uint64_t>(began_ns));
    }
  }
}

bool HangJudge::HasStoppedIn(uint32_t core, const OpenKey& key, const OpenSpan& open) const {
  const auto left = left_.find({key, open.exec_id});
  return left != left_.end() && NowOf(core) > open.start_ns &&
         NowOf(core) - open.start_ns > left->second;
}

std::map<OpenKey, OpenOperation> HangJudge::FindOpen() const {
  std::map<OpenKey, OpenOperation> result;
  for (const uint32_t core : fleet_.cores) {
    // What it left open ended with its runtime: it waits for nothing.
    if (input_.conditions[core].has_ended && input_.conditions[core].ended_orderly) continue;
    const CoreHistory& history = *input_.histories[core];
    for (const OpenSpan& open : history.open) {
      const std::optional<OpenKey> key = KeyOf(history, open);
      if (!key || HasStoppedIn(core, *key, open)) continue;
      OpenOperation& operation = result[*key];
      const uint64_t now = NowOf(core);
      // Once, even if both physical cores of a logical one are in it.
      if (operation.inside.empty() || operation.inside.back() != core)
        operation.inside.push_back(core);
      operation.exec_id = std::max(operation.exec_id, open.exec_id);
      if (now > open.start_ns) operation.age_ns = std::max(operation.age_ns, now - open.start_ns);
    }
  }
  std::erase_if(result, [&](const auto& entry) { return entry.second.age_ns <= limit_ns_; });
  return result;
}

const CoreOperation* HangJudge::MembershipOf(uint32_t core, const OpenKey& key) const {
  const CoreHistory& history = *input_.histories[core];
  const auto& [kind, group, op] = key;
  for (const CoreOperation& operation : history.operations) {
    if (operation.kind == kind && operation.op == static_cast<uint32_t>(op) &&
        history.groups[operation.group] == group)
      return &operation;
  }
  return nullptr;
}

bool HangJudge::AreAllMembersKnown(const OpenKey& key, size_t count) const {
  const std::string& job = input_.cores[fleet_.cores.front()].job;
  uint32_t present = 0;
  uint32_t world = 0;
  for (const InsightCore& core : input_.cores) {
    if (core.job != job) continue;
    ++present;
    world = std::max(world, core.world_size);
  }
  if (present < world) return false;
  std::map<uint64_t, size_t> sizes;  // of the groups with the same operation
  for (const uint32_t core : fleet_.cores) {
    const CoreHistory& history = *input_.histories[core];
    for (const CoreOperation& operation : history.operations) {
      if (operation.kind == std::get<0>(key) &&
          operation.op == static_cast<uint32_t>(std::get<2>(key)))
        ++sizes[history.groups[operation.group]];
    }
  }
  return std::all_of(sizes.begin(), sizes.end(),
                     [&](const auto& group) { return group.second <= count; });
}

bool HangJudge::WaitsElsewhere(uint32_t core) const {
  const CoreHistory& history = *input_.histories[core];
  return std::any_of(history.open.begin(), history.open.end(), [&](const OpenSpan& open) {
    const std::optional<OpenKey> key = KeyOf(history, open);
    return key && !HasStoppedIn(core, *key, open) && NowOf(core) > open.start_ns &&
           NowOf(core) - open.start_ns > limit_ns_;
  });
}

bool HangJudge::HasFailed(uint32_t core) const {
  const CoreHistory& history = *input_.histories[core];
  const uint64_t complete = history.kept() == 0 ? 0 : history.latest(0).end_ns;
  return history.last_error_ns > complete;
}

HangJudge::Members HangJudge::ExamineMembers(const OpenKey& key, const OpenOperation& open) const {
  Members members;
  for (const uint32_t core : fleet_.cores) {
    const bool is_inside = std::binary_search(open.inside.begin(), open.inside.end(), core);
    const CoreOperation* membership = MembershipOf(core, key);
    if (!is_inside && membership == nullptr) continue;
    ++members.count;
    const CoreCondition& condition = input_.conditions[core];
    if (HasLost(core)) {
      members.is_explained = true;
    } else if (HasFailed(core)) {
      members.failed.push_back(core);
    } else if (condition.has_ended) {
      members.ended.push_back(core);
    } else if (is_inside) {
      continue;
    } else if (open.exec_id != 0 && membership->last_exec_id >= open.exec_id) {
      members.has_left = true;
    } else if (WaitsElsewhere(core)) {
      members.is_explained = true;
    } else {
      const CoreHistory& history = *input_.histories[core];
      const uint64_t complete = history.kept() == 0 ? 0 : history.latest(0).end_ns;
      const bool is_alive = NowOf(core) > complete && NowOf(core) - complete > limit_ns_;
      (is_alive ? members.absent : members.silent).push_back(core);
    }
  }
  return members;
}

void HangJudge::AddVerdict(const OpenKey& key, const OpenOperation& open,
                           std::vector<Verdict>& verdicts) {
  const Members members = ExamineMembers(key, open);
  // The others that it waits for are not in the capture, or its group is not known.
  if (members.count < 2) return;
  const auto add = [&](VerdictKind kind, const std::vector<uint32_t>& suspects) {
    Verdict verdict = Describe(kind, suspects, key, open);
    for (Verdict& known : verdicts) {
      if (known.kind != kind || known.suspects != suspects) continue;
      // The same cores are missing in several operations: the longest wait shows it best.
      if (verdict.cost_ns > known.cost_ns) known = std::move(verdict);
      return;
    }
    verdicts.push_back(std::move(verdict));
  };
  if (!members.failed.empty()) return add(VerdictKind::kDeviceError, members.failed);
  if (!members.ended.empty()) return add(VerdictKind::kDeadWorker, members.ended);
  if (members.has_left) {
    for (const uint32_t core : open.inside) {
      refusals_.Add(RefusalReason::kContradiction, core,
                    "Some cores have left an operation that others are still in; the runtime's ids "
                    "cannot be used.");
    }
    return;
  }
  for (const uint32_t core : members.silent) {
    refusals_.Add(RefusalReason::kNoCanary, core, kSilentText);
  }
  if (!members.absent.empty()) add(VerdictKind::kHangNotEntered, members.absent);
  if (!members.absent.empty() || !members.silent.empty() || members.is_explained) return;
  if (AreAllMembersKnown(key, members.count)) return add(VerdictKind::kHangInside, open.inside);
  for (const uint32_t core : open.inside) {
    refusals_.Add(RefusalReason::kCoverage, core,
                  "These cores wait in an operation that may have members outside the capture; "
                  "record all workers of the job.");
  }
}

std::vector<Verdict> HangJudge::Judge() {
  std::vector<Verdict> verdicts;
  for (const auto& [key, open] : FindOpen()) AddVerdict(key, open, verdicts);
  return verdicts;
}

InsightPhase HangJudge::PhaseOf(uint32_t core) const {
  InsightPhase phase = InsightPhase::kGap;
  for (const OpenSpan& open : input_.histories[core]->open) {
    if (!open.is_used) continue;
    if (open.kind == InsightClass::kRun) return InsightPhase::kDevice;
    if (open.kind == InsightClass::kPrepare) phase = InsightPhase::kPre;
    if (open.kind == InsightClass::kPost) phase = InsightPhase::kPost;
    if (open.kind == InsightClass::kExecute && phase == InsightPhase::kGap)
      phase = InsightPhase::kSubmit;
  }
  return phase;
}

Verdict HangJudge::Describe(VerdictKind kind, std::vector<uint32_t> suspects, const OpenKey& key,
                            const OpenOperation& open) const {
  const uint32_t first = suspects.front();
  const CoreHistory& history = *input_.histories[first];
  Verdict verdict;
  verdict.kind = kind;
  verdict.suspects = std::move(suspects);
  verdict.group = std::get<1>(key);
  verdict.is_barrier = std::get<0>(key) != InsightClass::kCollective;
  verdict.op_id = verdict.is_barrier ? 0 : std::get<2>(key);
  verdict.exec_id = open.exec_id;
  verdict.cost_ns = open.age_ns;
  verdict.until_ns = NowOf(first);
  if (kind == VerdictKind::kHangInside) {
    verdict.phase = InsightPhase::kTransfer;
    verdict.since_ns = NowOf(first) > open.age_ns ? NowOf(first) - open.age_ns : 0;
  } else {
    verdict.phase = PhaseOf(first);
    verdict.since_ns = history.last_event_ns;
  }
  for (const uint32_t core : open.inside) {
    if (!std::binary_search(verdict.suspects.begin(), verdict.suspects.end(), core))
      ++verdict.waiting;
  }
  verdict.ruled_out.push_back(
      {"slow operation", 0,
       fmt::format("open for {:.1f} s, limit {:.1f} s", static_cast<double>(open.age_ns) / 1e9,
                   static_cast<double>(limit_ns_) / 1e9)});
  return verdict;
}

}  // namespace

std::vector<Verdict> JudgeHangs(const JudgeInput& input, const Fleet& fleet,
                                RefusalList& refusals) {
  return HangJudge(input, fleet, refusals).Judge();
}

}  // namespace neurontrace
