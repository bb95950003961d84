// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/visibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "absl/strings/cord.h"
#include "lib/base/status.h"
#include "lib/trace/capture_selection.h"

namespace neurontrace {
namespace {

// The payload of a status in which HiddenError keeps what the caller may learn.
constexpr char kHiddenPayload[] = "neurontrace/hidden";
constexpr std::string_view kOtherCapture = "another capture";
// The ends of warnings after which other people's workers are listed; they must equal the texts of
// session/coordinator.cc, session/capture_end.cc and operator/capture_describer.cc.
constexpr std::string_view kInventoryFollows[] = {"no worker matched; ", "no worker matches yet; "};

using Patterns = std::vector<std::string>;

// Returns whether any pattern matches the text.
bool IsAnyMatched(const Patterns& patterns, std::string_view text) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [text](const std::string& pattern) { return MatchesPattern(pattern, text); });
}

// Returns whether the worker has a fact with this key that a pattern matches. No patterns admit
// every worker.
bool HasFactLike(const WorkerInfo& worker, std::string_view key, const Patterns& patterns) {
  if (patterns.empty()) return true;
  return std::any_of(worker.job_facts.begin(), worker.job_facts.end(), [&](const KeyValue& fact) {
    return fact.key == key && IsAnyMatched(patterns, fact.value);
  });
}

// Ids consist of letters and digits only, so words end at anything else.
bool IsIdCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Returns patterns for what both lists admit; nullopt if no text matches both. An empty list admits
// all.
std::optional<Patterns> IntersectPatterns(const Patterns& a, const Patterns& b) {
  if (a.empty() || b.empty()) return a.empty() ? b : a;
  Patterns both;
  for (const std::string& one : a) {
    for (const std::string& other : b) {
      const std::string_view one_stem(one.data(), one.size() - (one.ends_with('*') ? 1 : 0));
      const std::string_view other_stem(other.data(),
                                        other.size() - (other.ends_with('*') ? 1 : 0));
      // If two patterns admit a common text, one of them admits everything that the other does.
      const bool one_is_narrower =
          MatchesPattern(other, one_stem) && (other.ends_with('*') || !one.ends_with('*'));
      const bool other_is_narrower =
          MatchesPattern(one, other_stem) && (one.ends_with('*') || !other.ends_with('*'));
      const std::string* const narrower =
          one_is_narrower ? &one : (other_is_narrower ? &other : nullptr);
      if (narrower == nullptr) continue;
      if (std::find(both.begin(), both.end(), *narrower) == both.end()) both.push_back(*narrower);
    }
  }
  if (both.empty()) return std::nullopt;
  return both;
}

}  // namespace

// A worker has to pass every limit that the caller has.
bool CanSee(const Caller& caller, const WorkerInfo& worker) {
  if (!HasFactLike(worker, "namespace", caller.namespaces)) return false;
  if (!HasFactLike(worker, "uid", caller.uids)) return false;
  if (caller.jobs.empty()) return true;
  const std::vector<std::string_view> names = JobNamesOf(worker);
  return std::any_of(names.begin(), names.end(),
                     [&caller](std::string_view name) { return IsAnyMatched(caller.jobs, name); });
}

// Goes through the text word by word. A word that is an id, and not visible, is replaced together
// with the word "capture" before it.
std::string HideCaptures(std::string_view text, const CanSeeCapture& can_see) {
  constexpr std::string_view kBefore = "capture ";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && IsIdCharacter(text[end])) ++end;
    const std::string_view word = text.substr(at, std::max(end, at + 1) - at);
    at += word.size();
    const auto id =
        word.size() == CaptureId::kTextLength ? CaptureId::Parse(word) : absl::NotFoundError("");
    if (!id.ok() || can_see(*id)) {
      out += word;
      continue;
    }
    if (out.ends_with(kBefore)) out.resize(out.size() - kBefore.size());
    out += kOtherCapture;
  }
  return out;
}

// Workers with a part stay, because the caller may see the capture that they belong to.
void HideInvisible(const std::function<bool(const WorkerIdentity&)>& is_visible,
                   const CanSeeCapture& can_see, CaptureRecord& record) {
  // Without its agent nothing is known of a worker but its instance.
  std::erase_if(record.non_participants, [&](const NonParticipant& non_participant) {
    return non_participant.reason != NonParticipantReason::kAgentAway &&
           !is_visible(non_participant.worker);
  });
  for (auto* const warnings : {&record.warnings, &record.end_warnings}) {
    for (std::string& warning : *warnings) {
      warning = HideCaptures(WithoutInventory(warning), can_see);
    }
  }
  for (CaptureWorkerStatus& worker : record.workers) {
    worker.detail = HideCaptures(worker.detail, can_see);
  }
}

// Keeps the sentence up to the separator.
std::string WithoutInventory(std::string_view warning) {
  for (const std::string_view words : kInventoryFollows) {
    const size_t at = warning.find(words);
    if (at != std::string_view::npos) {
      return std::string(warning.substr(0, at + words.size() - 2));
    }
  }
  return std::string(warning);
}

// The audit log reads the message, the caller gets the payload.
absl::Status HiddenError(const absl::Status& reason, const absl::Status& told) {
  absl::Status status = reason;
  status.SetPayload(kHiddenPayload, absl::Cord(told.message()));
  return status;
}

absl::Status StatusForCaller(const absl::Status& status) {
  const auto told = status.GetPayload(kHiddenPayload);
  if (!told.has_value()) return status;
  return absl::NotFoundError(std::string(*told));
}

// Both lists of a kind are intersected. If one has no common pattern, no capture could be
// permitted.
absl::StatusOr<Caller> Intersect(const Caller& certificate, const Caller& token) {
  const auto refuse = [&](std::string_view why) {
    return absl::PermissionDeniedError(fmt::format(
        "the call has the certificate of {} and the token of {}, and {}; use only one of them",
        certificate.name, token.name, why));
  };
  if ((certificate.role == Role::kAgent) != (token.role == Role::kAgent)) {
    return refuse("one is an agent's and the other is not");
  }
  const auto jobs = IntersectPatterns(certificate.jobs, token.jobs);
  const auto namespaces = IntersectPatterns(certificate.namespaces, token.namespaces);
  const auto uids = IntersectPatterns(certificate.uids, token.uids);
  if (!jobs || !namespaces || !uids) return refuse("they have no job in common");
  // The name is that of the token.
  Caller caller = token;
  caller.role = std::min(certificate.role, token.role);
  caller.jobs = *jobs;
  caller.namespaces = *namespaces;
  caller.uids = *uids;
  return caller;
}

}  // namespace neurontrace
