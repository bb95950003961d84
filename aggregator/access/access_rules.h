// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/access/role.h"

// Who has which role: the file of --access, as TOML. docs/operator/security.md has the keys. A file
// is good or bad as a whole.
namespace neurontrace {

// One section: any of its credentials is enough. Patterns may end with *.
struct AccessRule {
  Caller caller;
  std::vector<std::string> certificates;      // "dns:NAME", "uri:URI", "cn:NAME"
  std::vector<std::string> token_hashes;      // SHA-256, 64 lower-case hexadecimal digits
  std::vector<std::string> service_accounts;  // "NAMESPACE/NAME", of Kubernetes

  friend bool operator==(const AccessRule&, const AccessRule&) = default;
};

// Immutable once made, so for any thread. The first rule that fits counts.
class AccessRules {
 public:
  // Without a file: a certificate's role is in it, as a URI "neurontrace:operator".
  AccessRules() = default;
  explicit AccessRules(std::vector<AccessRule> rules) : rules_(std::move(rules)), by_file_(true) {}

  // By a name in the certificate: "dns:NAME", "uri:URI", "cn:NAME".
  std::optional<Caller> ByCertificate(const std::vector<std::string>& identities) const;
  std::optional<Caller> ByToken(std::string_view token) const;
  // "NAMESPACE/NAME", as the API server says it.
  std::optional<Caller> ByServiceAccount(std::string_view account) const;
  bool has_service_accounts() const;
  // Whether any agent could connect.
  bool has_agents() const;

  size_t size() const { return rules_.size(); }

  friend bool operator==(const AccessRules&, const AccessRules&) = default;

 private:
  std::vector<AccessRule> rules_;
  bool by_file_ = false;
};

// Fails with INVALID_ARGUMENT, a line "PATH:LINE:COLUMN: [NAME]: WORDS" for each problem; `text`
// may be anything.
absl::StatusOr<AccessRules> ParseAccessFile(std::string_view text, const std::string& path);
// The same, and ReadSmallFile's errors.
absl::StatusOr<AccessRules> ReadAccessFile(const std::string& path);

}  // namespace neurontrace
