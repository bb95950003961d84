// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/role.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {
namespace {

// In the order of the enumeration: ToString uses the role as an index.
constexpr std::pair<Role, std::string_view> kRoles[] = {{Role::kAgent, "agent"},
                                                        {Role::kViewer, "viewer"},
                                                        {Role::kOperator, "operator"},
                                                        {Role::kAdmin, "admin"}};

// States which role the calls with a prefix need.
struct CallRule {
  std::string_view prefix;  // of the path
  Role role;
};

// The first match applies. A new call that is not listed needs an admin until somebody decides.
constexpr CallRule kCalls[] = {
    {"/neurontrace.v1.AgentGateway/", Role::kAgent},
    {"/neurontrace.v1.ArtifactGateway/", Role::kAgent},
    {"/neurontrace.v1.ClockGateway/", Role::kAgent},
    {"/neurontrace.v1.OperatorService/Get", Role::kViewer},
    {"/neurontrace.v1.OperatorService/List", Role::kViewer},
    {"/neurontrace.v1.OperatorService/WatchCapture", Role::kViewer},
    {"/neurontrace.v1.OperatorService/Export", Role::kViewer},
    {"/neurontrace.v1.OperatorService/Explain", Role::kViewer},
    {"/neurontrace.v1.OperatorService/StartCapture", Role::kOperator},
    {"/neurontrace.v1.OperatorService/StopCapture", Role::kOperator},
    {"/neurontrace.v1.OperatorService/UpdateCapture", Role::kOperator},
    {"/neurontrace.v1.OperatorService/FireTrigger", Role::kOperator},
    {"/neurontrace.v1.OperatorService/CollectStacks", Role::kOperator},
    {"/grpc.health.v1.Health/", Role::kViewer},
    {"/grpc.reflection.", Role::kViewer},
};

// Returns whether any pattern matches.
bool AnyMatchesOf(const std::vector<std::string>& patterns, std::string_view text) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return MatchesPattern(pattern, text); });
}

// A caller that is limited to jobs has to name one: a capture without a job could record every
// worker. An empty list admits all jobs.
absl::Status CheckJob(const Caller& caller, std::string_view job) {
  if (caller.jobs.empty() || (!job.empty() && AnyMatchesOf(caller.jobs, job))) {
    return absl::OkStatus();
  }
  const std::string jobs = fmt::format("{}", fmt::join(caller.jobs, ", "));
  if (job.empty()) {
    return absl::PermissionDeniedError(
        fmt::format("{} may only capture jobs {}; choose one with --job", caller.name, jobs));
  }
  return absl::PermissionDeniedError(
      fmt::format("{} may only capture jobs {}, but this capture is of {}", caller.name, jobs,
                  CleanText(job, limits::kAuditTextBytesMax)));
}

// One kind of limit, with the fact of workers that it applies to.
struct OwnerLimit {
  std::string_view fact;  // of workers, that a spec selects them by
  std::string_view words;
  const std::vector<std::string>& values;
};
// Returns the limits other than jobs. They refer to `caller`.
std::array<OwnerLimit, 2> LimitsOf(const Caller& caller) {
  return {{{"namespace", "namespaces", caller.namespaces}, {"uid", "users", caller.uids}}};
}

// A worker has one value of each fact, so any of several entries serves.
const KeyValue* FindFact(const CaptureSpec& spec, std::string_view key) {
  const auto found = std::find_if(spec.selection.job_facts.begin(), spec.selection.job_facts.end(),
                                  [key](const KeyValue& fact) { return fact.key == key; });
  return found == spec.selection.job_facts.end() ? nullptr : &*found;
}

}  // namespace

std::string_view ToString(Role role) { return kRoles[static_cast<size_t>(role)].second; }

std::optional<Role> RoleOf(std::string_view word) {
  const auto found = std::find_if(std::begin(kRoles), std::end(kRoles),
                                  [&](const auto& each) { return each.second == word; });
  return found == std::end(kRoles) ? std::nullopt : std::optional(found->first);
}

bool MatchesPattern(std::string_view pattern, std::string_view text) {
  if (!pattern.ends_with('*')) return pattern == text;
  return text.starts_with(pattern.substr(0, pattern.size() - 1));
}

// Only a single whole value can be selected; with several, or a pattern, the caller has to choose.
CaptureSpec WithOwner(const Caller& caller, CaptureSpec spec) {
  for (const OwnerLimit& limit : LimitsOf(caller)) {
    if (limit.values.size() != 1 || limit.values[0].ends_with('*')) continue;
    if (FindFact(spec, limit.fact) != nullptr) continue;
    spec.selection.job_facts.push_back({std::string(limit.fact), limit.values[0]});
  }
  return spec;
}

// Every limited fact must be selected by the spec: only then can no worker of somebody else join
// later.
absl::Status CheckOwner(const Caller& caller, const CaptureSpec& spec) {
  RETURN_IF_ERROR(CheckJob(caller, spec.selection.job));
  for (const OwnerLimit& limit : LimitsOf(caller)) {
    if (limit.values.empty()) continue;
    const KeyValue* const fact = FindFact(spec, limit.fact);
    if (fact != nullptr && AnyMatchesOf(limit.values, fact->value)) continue;
    return absl::PermissionDeniedError(fmt::format(
        "{} may only capture {} {}{}", caller.name, limit.words, fmt::join(limit.values, ", "),
        fact == nullptr ? fmt::format("; choose one with --job {}=VALUE", limit.fact)
                        : fmt::format(", but this capture is of {}",
                                      CleanText(fact->value, limits::kAuditTextBytesMax))));
  }
  return absl::OkStatus();
}

// DeleteCapture needs an admin, and the others an operator or a viewer; all of them name a capture.
bool IsCheckedByItsHandler(std::string_view path) {
  constexpr std::string_view kService = "/neurontrace.v1.OperatorService/";
  if (!path.starts_with(kService)) return false;
  path.remove_prefix(kService.size());
  constexpr std::array<std::string_view, 8> kCallsOfCaptures = {
      "StartCapture", "StopCapture", "DeleteCapture", "UpdateCapture",
      "FireTrigger",  "Export",      "GetArtifact",   "CollectStacks"};
  return std::ranges::find(kCallsOfCaptures, path) != kCallsOfCaptures.end();
}

// Roles are compared by their order, except for agents.
absl::Status CheckCall(const Caller& caller, std::string_view path) {
  const auto rule = std::find_if(std::begin(kCalls), std::end(kCalls), [&](const CallRule& each) {
    return path.starts_with(each.prefix);
  });
  const Role needed = rule == std::end(kCalls) ? Role::kAdmin : rule->role;
  // Agents are separate: only they deliver, and they may not read.
  const bool may = needed == Role::kAgent || caller.role == Role::kAgent ? needed == caller.role
                                                                         : caller.role >= needed;
  if (may) return absl::OkStatus();
  // The message names the method without its service.
  const size_t slash = path.rfind('/');
  return absl::PermissionDeniedError(fmt::format(
      "'{}' has the role {}; {} needs {}{}", caller.name, ToString(caller.role),
      CleanText(path.substr(slash == std::string_view::npos ? 0 : slash + 1), 64), ToString(needed),
      needed == Role::kAgent || needed == Role::kAdmin ? "" : " or higher"));
}

}  // namespace neurontrace
