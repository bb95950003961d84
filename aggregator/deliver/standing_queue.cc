// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/standing_queue.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "aggregator/deliver/export_roots.h"
#include "lib/base/backoff.h"
#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/base/toml_file.h"

namespace neurontrace {
namespace {

constexpr size_t kRuleNameBytesMax = 64;
constexpr size_t kShownBytesMax = 1'000;  // of a rule in a message

// Names are words of the state file's lines, and appear in logs.
bool IsRuleName(std::string_view name) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  return !name.empty() && name.size() <= kRuleNameBytesMax &&
         std::all_of(name.begin(), name.end(), is_good);
}

// Returns a rule of the form KEY=VALUE KEY=VALUE as TOML, for the error message, or an empty text
// if it does not have that form.
std::string TextsAsToml(std::string_view text) {
  std::string members;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const size_t equals = word.find('=');
    if (word.empty()) continue;
    if (equals == std::string_view::npos || word.find_first_of("{\"") < equals) return "";
    const std::string_view value = word.substr(equals + 1);
    members += fmt::format("{}{} = {}", members.empty() ? "" : ", ", word.substr(0, equals),
                           value == "yes"  ? "true"
                           : value == "no" ? "false"
                                           : IniValueAsToml(value));
  }
  return members.empty() ? "" : fmt::format("{{{}}}", members);
}

// The version of the file's form; a file with another one is not read.
constexpr std::string_view kHeader = "neurontrace standing exports 1";
// Bounds the memory for a planted file; the assertions below prove that a full queue fits.
constexpr size_t kStateBytesMax = 64u << 20;
constexpr size_t kEntryBytesMax = 160;  // a rule's name, a capture, two numbers and a word
static_assert(StandingQueue::kPendingMax < StandingQueue::kEntriesMax);
static_assert(StandingQueue::kEntriesMax * kEntryBytesMax < kStateBytesMax);

}  // namespace

// The text is parsed as the value of a TOML key.
absl::StatusOr<StandingRule> ParseStandingRule(std::string_view text) {
  const std::string shown = CleanText(text, kShownBytesMax);
  if (text.find_first_not_of(' ') != text.find('{') || text.find('{') == std::string_view::npos) {
    const std::string toml = CleanText(TextsAsToml(text), kShownBytesMax);
    return InvalidArgument("--standing-export {}: write it as TOML: {}", shown,
                           toml.empty() ? "{name = \"all\", to = \"/DIRECTORY\"}" : toml);
  }
  ASSIGN_OR_RETURN(const TomlNode root,
                   ParseToml(fmt::format("rule = {}", text), "--standing-export"));
  TomlProblems problems("--standing-export");
  StandingRule rule;
  const auto take_format = [&rule](const TomlNode& value) -> std::string {
    return ParseTomlString(rule.formats.emplace_back())(value);
  };
  const auto take_incomplete = [&rule](const TomlNode& value) -> std::string {
    rule.incomplete = value.text == "true";
    return value.kind == TomlKind::kBoolean ? "" : "must be true or false, without quotes";
  };
  if (root.children.size() != 1) {
    return InvalidArgument("--standing-export {}: remove the text after the closing brace", shown);
  }
  ParseTomlSection(root.children[0],
                   {{"name", ParseTomlString(rule.name)},
                    {"to", ParseTomlString(rule.to)},
                    {.name = "formats", .take = take_format, .is_list = true},
                    {"job", ParseTomlString(rule.job)},
                    {"capture", ParseTomlString(rule.capture)},
                    {"incomplete", take_incomplete}},
                   problems);
  RETURN_IF_ERROR(problems.status());
  if (!IsRuleName(rule.name)) {
    return InvalidArgument(
        "--standing-export {}: the name must have only letters, digits, - and _: name = \"NAME\"",
        shown);
  }
  if (!IsDestination(rule.to)) {
    return InvalidArgument(
        "--standing-export {}: the destination is missing; add to = \"/DIRECTORY\"", shown);
  }
  if (rule.formats.empty()) rule.formats = {"perfetto"};
  return rule;
}

// Each condition can only exclude a capture.
bool Matches(const StandingRule& rule, const CaptureRecord& record) {
  const bool is_complete = record.state == CaptureState::kComplete;
  const bool is_wanted =
      is_complete || (rule.incomplete && record.state == CaptureState::kIncomplete);
  // Captures of other modes send no events: see CaptureMode.
  const bool has_events = record.spec.mode == CaptureMode::kStream ||
                          record.spec.mode == CaptureMode::kSnapshot ||
                          record.spec.mode == CaptureMode::kContinuous;
  if (!is_wanted || !has_events || record.workers.empty()) return false;
  if (!rule.job.empty() && record.spec.selection.job != rule.job) {
    const auto is_job = [&](const KeyValue& fact) { return fact.value == rule.job; };
    const auto& facts = record.spec.selection.job_facts;
    if (std::none_of(facts.begin(), facts.end(), is_job)) return false;
  }
  if (rule.capture.empty()) return true;
  if (!rule.capture.ends_with('*')) return record.spec.name == rule.capture;
  return record.spec.name.starts_with(
      std::string_view(rule.capture).substr(0, rule.capture.size() - 1));
}

StandingQueue::StandingQueue(const Deps& deps, std::string path, std::vector<StandingRule> rules,
                             std::string& problem)
    : deps_(deps), path_(std::move(path)), rules_(std::move(rules)) {
  Read(problem);
  for (const StandingRule& rule : rules_) {
    // A new rule must not export everything that the store still has.
    if (since_.emplace(rule.name, deps_.clock.RealtimeNs()).second) has_changed_ = true;
  }
  // A removed rule leaves nothing: if it returns, it is a new rule.
  std::erase_if(entries_, [this](const auto& entry) { return !FindRule(entry.first.first); });
  std::erase_if(since_, [this](const auto& since) { return !FindRule(since.first); });
  for (const auto& [key, entry] : entries_) counts_.pending += entry.state == State::kPending;
}

// A file that cannot be read leaves the queue empty, and the next Save replaces it.
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
    problem =
        fmt::format("{}: '{}' is not a valid line; the rest of the file is ignored", path_, line);
}

// A line is "since RULE NS" or "STATE RULE CAPTURE TRIES DUE".
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

// The whole file is written each time. It has one short line for each entry.
absl::Status StandingQueue::Save() {
  if (!has_changed_) return absl::OkStatus();
  std::string text(kHeader);
  text += '\n';
  for (const auto& [rule, since_ns] : since_) text += fmt::format("since {} {}\n", rule, since_ns);
  for (const auto& [key, entry] : entries_) {
    // In the order of State; forgone entries are removed and never saved.
    constexpr std::string_view kWords[] = {"pending", "done", "failed"};
    text += fmt::format("{} {} {} {} {}\n", kWords[static_cast<size_t>(entry.state)], key.first,
                        key.second, entry.tries, entry.due_realtime_ns);
  }
  // A crash leaves either the old file or the new one, never a half.
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

std::vector<StandingQueue::RuleCounts> StandingQueue::CountByRule() const {
  std::map<std::string_view, RuleCounts> by_name;
  for (const auto& [key, entry] : entries_) {
    RuleCounts& counts = by_name[key.first];
    counts.pending += entry.state == State::kPending;
    counts.done += entry.state == State::kDone;
    counts.failed += entry.state == State::kFailed;
  }
  std::vector<RuleCounts> counts;
  counts.reserve(rules_.size());
  for (const StandingRule& rule : rules_) counts.push_back(by_name[rule.name]);
  return counts;
}

void StandingQueue::Offer(const CaptureRecord& record, uint64_t due_realtime_ns) {
  for (const StandingRule& rule : rules_) {
    if (record.ended_realtime_ns < since_.at(rule.name) || !Matches(rule, record)) continue;
    const Key key(rule.name, record.id.ToString());
    if (entries_.contains(key)) continue;
    // Not remembered at all, since that is what is full; it is counted each time it is offered.
    if (entries_.size() >= kEntriesMax) {
      ++counts_.failed;
      continue;
    }
    Entry entry{.due_realtime_ns = due_realtime_ns};
    if (counts_.pending >= kPendingMax) {
      // Remembered as failed, so that the next start does not count it again.
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

void StandingQueue::ForgetDeleted(const std::function<bool(const CaptureId&)>& is_gone) {
  const uint64_t now_ns = deps_.clock.MonotonicNs();
  if (now_ns < forget_at_ns_) return;
  forget_at_ns_ = now_ns + kForgetPauseNs;
  for (const CaptureId& id : Captures()) {
    if (is_gone(id)) Forget(id);
  }
}

// Changes the state of an existing entry, and keeps the counts in step with the entries.
void StandingQueue::SetState(Entry& entry, State state) {
  if (entry.state == State::kPending) --counts_.pending;
  counts_.done += state == State::kDone;
  counts_.failed += state == State::kFailed;
  counts_.forgone += state == State::kForgone;
  entry.state = state;
  has_changed_ = true;
}

// Takes linear time in the number of entries, which kEntriesMax bounds.
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

// A task whose capture was forgotten meanwhile has no entry, and its result is ignored.
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
    // Replays the growth of pauses, because only the number of attempts is stored.
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
