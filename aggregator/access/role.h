// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "lib/trace/capture_spec.h"

// Who calls, and what they may do. Pure.
namespace neurontrace {

// An agent delivers, and may do nothing else. Of the others each may do what the one before may: a
// viewer looks and exports, an operator starts and stops captures and has exports written, an admin
// deletes.
enum class Role : uint8_t { kAgent, kViewer, kOperator, kAdmin };

std::string_view WordOf(Role role);
std::optional<Role> RoleOf(std::string_view word);

struct Caller {
  std::string name;          // for people: of the rule in the access file, or in the certificate
  Role role = Role::kAgent;  // which may look at nothing and begin nothing
  // Names of jobs, each whole or with a * for any ending; empty: all, and what belongs to none.
  std::vector<std::string> jobs;
  // Also Kubernetes namespaces, and users by their numbers.
  std::vector<std::string> namespaces;
  std::vector<std::string> uids;

  bool is_limited() const { return !jobs.empty() || !namespaces.empty() || !uids.empty(); }

  friend bool operator==(const Caller&, const Caller&) = default;
};

// Whether `text` is what `pattern` says: the same, or with its beginning where it ends with *.
bool MatchesPattern(std::string_view pattern, std::string_view text);

// The capture that a caller asks for, with what goes without saying: where there is one namespace,
// or one user, whose captures alone they may have, it is selected.
CaptureSpec WithOwner(const Caller& caller, CaptureSpec spec);

// PERMISSION_DENIED, with the way out, where the caller may do nothing with a capture of this spec:
// it could hold workers of jobs, namespaces or users that are not theirs. Agents record no worker
// that does not have all that the spec selects, whenever it joins.
absl::Status CheckOwner(const Caller& caller, const CaptureSpec& spec);

// Whether a role may make the call of this HTTP/2 path, as
// "/neurontrace.v1.OperatorService/Export". PERMISSION_DENIED names the role that may; one that
// nobody knows here is for admins.
absl::Status CheckCall(const Caller& caller, std::string_view path);

// Whether the handler of this call checks the role of whoever is no agent, and writes a refusal
// into the audit log with the capture and the address that it knows.
bool IsCheckedByItsHandler(std::string_view path);

}  // namespace neurontrace
