// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/standing_queue.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>

#include "base/backoff.h"
#include "base/status.h"

namespace neurontrace {
namespace {

constexpr std::string_view kHeader = "neurontrace standing exports 1";
constexpr size_t kStateBytesMax = 64u << 20;
constexpr size_t kEntryBytesMax = 160;  // a rule's name, a capture, two numbers and a word
static_assert(StandingQueue::kPendingMax < StandingQueue::kEntriesMax);
static_assert(StandingQueue::kEntriesMax * kEntryBytesMax < kStateBytesMax);

}  // namespace

StandingQueue::StandingQueue(const Deps& deps, std::string path, std::vector<StandingRule> rules,
                             std::string& problem)
    : deps_(deps), path_(std::move(path)), rules_(std::move(rules)) {
  Read(problem);
  for (const StandingRule& rule : rules_) {
    if (since_.emplace(rule.name, deps_.clock.RealtimeNs()).second) has_changed_ = true;
  }
  // Rules that are no more there leave nothing.
  std::erase_if(entries_, [this](const auto& entry) { return !FindRule(entry.first.first); });
  std::erase_if(since_, [this](const auto& since) { return !FindRule(since.first); });
  for (const auto& [key, entry] : entries_) counts_.pending += entry.state == State::kPending;
}

void StandingQueue::Read(std::string& problem) {
  const auto file = deps_.files.OpenForReading(path_);
  if (absl::IsNotFound(file.status())) return;
  const auto text =
      file.ok() ? (*file)->Read(0, kStateBytesMax) : absl::StatusOr<std::string>(file.status());
  if (!text.ok()) {
    problem = std::string(text.status().message());
    return;
  }
  std::istringstream lines(*text);
  std::string line;
  std::getline(lines, line);
  bool is_good = line == kHeader;
  while (is_good && std::getline(lines, line)) is_good = ReadLine(line);
  if (!is_good)
    problem = fmt::format("{}: '{}' is no line of it; the rest is left out", path_, line);
}

// "since RULE NS", or "STATE RULE CAPTURE TRIES DUE".
bool StandingQueue::ReadLine(const std::string& line) {
  std::istringstream words(line);
  std::string kind;
  std::string rule;
  words >> kind >> rule;
  if (kind == "since") {
    uint64_t since_ns = 0;
    if (!(words >> since_ns)) return false;
    since_[rule] = since_ns;
    return true;
  }
  std::string capture;
  Entry entry;
  if (!(words >> capture >> entry.tries >> entry.due_realtime_ns)) return false;
  if (!CaptureId::Parse(capture).ok()) return false;
  if (kind == "pending") {
    entry.state = State::kPending;
  } else if (kind == "done") {
    entry.state = State::kDone;
  } else if (kind == "failed") {
    entry.state = State::kFailed;
  } else {
    return false;
  }
  entries_[{rule, capture}] = entry;
  return true;
}

absl::Status StandingQueue::Save() {
  if (!has_changed_) return absl::OkStatus();
  std::string text(kHeader);
  text += '\n';
  for (const auto& [rule, since_ns] : since_) text += fmt::format("since {} {}\n", rule, since_ns);
  for (const auto& [key, entry] : entries_) {
    constexpr std::string_view kWords[] = {"pending", "done", "failed"};
    text += fmt::format("{} {} {} {} {}\n", kWords[static_cast<size_t>(entry.state)], key.first,
                        key.second, entry.tries, entry.due_realtime_ns);
  }
  const std::string temporary = path_ + ".part";
  ASSIGN_OR_RETURN(const auto file, deps_.files.Create(temporary));
  RETURN_IF_ERROR(file->Append(text));
  RETURN_IF_ERROR(file->Sync());
  RETURN_IF_ERROR(deps_.files.Rename(temporary, path_));
  RETURN_IF_ERROR(deps_.files.SyncDirectory(path_.substr(0, path_.rfind('/'))));
  has_changed_ = false;
  return absl::OkStatus();
}

const StandingRule* StandingQueue::FindRule(const std::string& name) const {
  for (const StandingRule& rule : rules_) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

void StandingQueue::Offer(const CaptureRecord& record, uint64_t due_realtime_ns) {
  for (const StandingRule& rule : rules_) {
    if (record.ended_realtime_ns < since_.at(rule.name) || !Matches(rule, record)) continue;
    const Key key(rule.name, record.id.ToString());
    if (entries_.contains(key)) continue;
    if (entries_.size() >= kEntriesMax) {
      ++counts_.failed;
      continue;
    }
    Entry entry{.due_realtime_ns = due_realtime_ns};
    if (counts_.pending >= kPendingMax) {
      entry.state = State::kFailed;
      ++counts_.failed;
    } else {
      ++counts_.pending;
    }
    entries_.emplace(key, entry);
    has_changed_ = true;
  }
}

void StandingQueue::Forget(const CaptureId& capture) {
  const std::string id = capture.ToString();
  for (auto at = entries_.begin(); at != entries_.end();) {
    if (at->first.second != id) {
      ++at;
      continue;
    }
    if (at->second.state == State::kPending) SetState(at->second, State::kForgone);
    at = entries_.erase(at);
    has_changed_ = true;
  }
}

void StandingQueue::ForgetGone(const std::function<bool(const CaptureId&)>& is_gone) {
  const uint64_t now_ns = deps_.clock.MonotonicNs();
  if (now_ns < forget_at_ns_) return;
  forget_at_ns_ = now_ns + kForgetPauseNs;
  for (const CaptureId& id : Captures()) {
    if (is_gone(id)) Forget(id);
  }
}

void StandingQueue::SetState(Entry& entry, State state) {
  if (entry.state == State::kPending) --counts_.pending;
  counts_.done += state == State::kDone;
  counts_.failed += state == State::kFailed;
  counts_.forgone += state == State::kForgone;
  entry.state = state;
  has_changed_ = true;
}

std::optional<StandingQueue::Task> StandingQueue::Next() const {
  const uint64_t now_ns = deps_.clock.RealtimeNs();
  const std::pair<const Key, Entry>* next = nullptr;
  for (const auto& entry : entries_) {
    const Entry& is = entry.second;
    if (is.state != State::kPending || is.due_realtime_ns > now_ns) continue;
    if (next == nullptr || is.due_realtime_ns < next->second.due_realtime_ns) next = &entry;
  }
  if (next == nullptr) return std::nullopt;
  return Task{FindRule(next->first.first), *CaptureId::Parse(next->first.second)};
}

void StandingQueue::Finish(const Task& task, const absl::Status& status) {
  const auto at = entries_.find({task.rule->name, task.capture.ToString()});
  if (at == entries_.end()) return;
  Entry& entry = at->second;
  ++entry.tries;
  has_changed_ = true;
  if (status.ok()) {
    SetState(entry, State::kDone);
  } else if (entry.tries >= kTriesMax) {
    SetState(entry, State::kFailed);
  } else {
    ++counts_.retried;
    Backoff backoff(deps_.random, kFirstPauseNs, kLongestPauseNs);
    uint64_t pause_ns = 0;
    for (uint32_t i = 0; i < entry.tries; ++i) pause_ns = backoff.NextDelayNs();
    entry.due_realtime_ns = deps_.clock.RealtimeNs() + pause_ns;
  }
}

std::vector<CaptureId> StandingQueue::Captures() const {
  std::set<std::string> ids;
  for (const auto& [key, entry] : entries_) ids.insert(key.second);
  std::vector<CaptureId> captures;
  for (const std::string& id : ids) captures.push_back(*CaptureId::Parse(id));
  return captures;
}

}  // namespace neurontrace
