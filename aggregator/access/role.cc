// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/role.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clean_text.h"
#include "base/status.h"
#include "trace/access_limits.h"

namespace neurontrace {
namespace {

constexpr std::pair<Role, std::string_view> kRoles[] = {{Role::kAgent, "agent"},
                                                        {Role::kViewer, "viewer"},
                                                        {Role::kOperator, "operator"},
                                                        {Role::kAdmin, "admin"}};

struct CallRule {
  std::string_view prefix;  // of the path
  Role role;
};

// The first that fits counts. What is new and not listed is an admin's until somebody decides.
constexpr CallRule kCalls[] = {
    {"/neurontrace.v1.AgentGateway/", Role::kAgent},
    {"/neurontrace.v1.ArtifactGateway/", Role::kAgent},
    {"/neurontrace.v1.ClockGateway/", Role::kAgent},
    {"/neurontrace.v1.OperatorService/Get", Role::kViewer},
    {"/neurontrace.v1.OperatorService/List", Role::kViewer},
    {"/neurontrace.v1.OperatorService/WatchCapture", Role::kViewer},
    {"/neurontrace.v1.OperatorService/Export", Role::kViewer},
    {"/neurontrace.v1.OperatorService/StartCapture", Role::kOperator},
    {"/neurontrace.v1.OperatorService/StopCapture", Role::kOperator},
    {"/neurontrace.v1.OperatorService/FireTrigger", Role::kOperator},
    {"/grpc.health.v1.Health/", Role::kViewer},
    {"/grpc.reflection.", Role::kViewer},
};

}  // namespace

std::string_view WordOf(Role role) { return kRoles[static_cast<size_t>(role)].second; }

std::optional<Role> RoleOf(std::string_view word) {
  const auto found = std::find_if(std::begin(kRoles), std::end(kRoles),
                                  [&](const auto& each) { return each.second == word; });
  return found == std::end(kRoles) ? std::nullopt : std::optional(found->first);
}

bool MatchesPattern(std::string_view pattern, std::string_view text) {
  if (!pattern.ends_with('*')) return pattern == text;
  return text.starts_with(pattern.substr(0, pattern.size() - 1));
}

absl::Status CheckJob(const Caller& caller, std::string_view job) {
  if (caller.jobs.empty()) return absl::OkStatus();
  const bool may = !job.empty() && std::any_of(caller.jobs.begin(), caller.jobs.end(),
                                               [&](const std::string& pattern) {
                                                 return MatchesPattern(pattern, job);
                                               });
  if (may) return absl::OkStatus();
  const std::string jobs = fmt::format("{}", fmt::join(caller.jobs, ", "));
  if (job.empty()) {
    return absl::PermissionDeniedError(
        fmt::format("{} has captures of the jobs {} alone, and this one is of any job: name one of "
                    "them with --job",
                    caller.name, jobs));
  }
  return absl::PermissionDeniedError(
      fmt::format("{} has captures of the jobs {} alone, and this one is of {}", caller.name, jobs,
                  CleanText(job, limits::kAuditTextBytesMax)));
}

absl::Status CheckCall(const Caller& caller, std::string_view path) {
  const auto rule = std::find_if(std::begin(kCalls), std::end(kCalls), [&](const CallRule& each) {
    return path.starts_with(each.prefix);
  });
  const Role needed = rule == std::end(kCalls) ? Role::kAdmin : rule->role;
  // Agents are apart: what they deliver nobody else may, and they may not look.
  const bool may = needed == Role::kAgent || caller.role == Role::kAgent ? needed == caller.role
                                                                         : caller.role >= needed;
  if (may) return absl::OkStatus();
  const size_t slash = path.rfind('/');
  return absl::PermissionDeniedError(fmt::format(
      "{} is {} {}: {} is for the role {}{}", caller.name,
      caller.role == Role::kViewer ? "a" : "an", WordOf(caller.role),
      CleanText(path.substr(slash == std::string_view::npos ? 0 : slash + 1), 64), WordOf(needed),
      needed == Role::kAgent || needed == Role::kAdmin ? "" : " and those above it"));
}

}  // namespace neurontrace
