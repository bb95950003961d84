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

// What a caller may do. An agent delivers data and may do nothing else. Each of the others may do
// what the previous one may: a viewer reads and exports, an operator starts and stops captures and
// has exports written, an admin deletes.
enum class Role : uint8_t { kAgent, kViewer, kOperator, kAdmin };

// Convert between a role and its name in access files; nullopt for any other text. The names are
// those of the access file and of the audit log.
std::string_view ToString(Role role);
std::optional<Role> RoleOf(std::string_view word);

// A caller with its role and limits. A plain value. The three lists limit what it may see; a worker
// must match each that is not empty.
struct Caller {
  std::string name;          // for people: of the rule in the access file, or in the certificate
  Role role = Role::kAgent;  // the default may read and start nothing
  // Job names, each whole or with a final *; empty: all jobs, and captures of no job.
  std::vector<std::string> jobs;
  // Kubernetes namespaces in the same form, and user ids. Patterns as in `jobs`. A user id is a
  // decimal number.
  std::vector<std::string> namespaces;
  std::vector<std::string> uids;

  // Returns whether the caller may see only some jobs.
  bool is_limited() const { return !jobs.empty() || !namespaces.empty() || !uids.empty(); }

  friend bool operator==(const Caller&, const Caller&) = default;
};

// Returns whether `text` equals `pattern`, or begins with it if it ends with *. An empty pattern
// matches only an empty text, and "*" matches every text.
bool MatchesPattern(std::string_view pattern, std::string_view text);

// Returns the requested spec with the caller's only namespace or user selected, if it is limited to
// one and has not selected any. The result is still to be checked by CheckOwner.
CaptureSpec WithOwner(const Caller& caller, CaptureSpec spec);

// Fails with PERMISSION_DENIED and advice if a capture of this spec could contain workers of jobs,
// namespaces or users that are not the caller's. Agents record only workers with everything that
// the spec selects, whenever those join.
absl::Status CheckOwner(const Caller& caller, const CaptureSpec& spec);

// Fails with PERMISSION_DENIED, naming the required role, unless the caller's role may make the
// call with this HTTP/2 path, such as "/neurontrace.v1.OperatorService/Export". Unknown calls need
// an admin.
absl::Status CheckCall(const Caller& caller, std::string_view path);

// Returns whether the handler of this call checks the role of callers other than agents, and writes
// a refusal with the capture and address that it knows to the audit log. These are the calls that
// name a capture (see AuthInterceptor).
bool IsCheckedByItsHandler(std::string_view path);

}  // namespace neurontrace
