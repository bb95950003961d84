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

// One section of the file: a caller, and the credentials that identify it. Any one is enough.
// Patterns may end with *.
struct AccessRule {
  Caller caller;
  std::vector<std::string> certificates;      // "dns:NAME", "uri:URI", "cn:NAME"
  std::vector<std::string> token_hashes;      // SHA-256, 64 lower-case hexadecimal digits
  std::vector<std::string> service_accounts;  // "NAMESPACE/NAME", of Kubernetes

  friend bool operator==(const AccessRule&, const AccessRule&) = default;
};

// An immutable list of rules, usable by any thread. The first matching rule applies. The order of
// the file decides, so that a specific rule can precede a general one.
class AccessRules {
 public:
  // Makes the rules without a file: a certificate states its role itself, as the URI
  // "neurontrace:operator". Then a certificate without such a URI matches nothing, and neither does
  // any token.
  AccessRules() = default;
  explicit AccessRules(std::vector<AccessRule> rules) : rules_(std::move(rules)), by_file_(true) {}

  // Return the caller of the first rule that matches; nullopt if none does. Identities of a
  // certificate are "dns:NAME", "uri:URI" or "cn:NAME". Each takes one scan of the rules.
  std::optional<Caller> ByCertificate(const std::vector<std::string>& identities) const;
  // Compares the SHA-256 of the token with those of the rules.
  std::optional<Caller> ByToken(std::string_view token) const;
  // `account` is "NAMESPACE/NAME" as confirmed by the API server.
  std::optional<Caller> ByServiceAccount(std::string_view account) const;
  // Returns whether any rule names one; otherwise nothing needs Kubernetes.
  bool has_service_accounts() const;
  // Returns whether any agent could connect. Always true without a file.
  bool has_agents() const;

  // Returns the number of rules; 0 without a file.
  size_t size() const { return rules_.size(); }

  friend bool operator==(const AccessRules&, const AccessRules&) = default;

 private:
  std::vector<AccessRule> rules_;
  // False for the default rules, which read certificates only.
  bool by_file_ = false;
};

// Parses the text of the file, which may be anything. Fails with INVALID_ARGUMENT and a line
// "PATH:LINE:COLUMN: [NAME]: PROBLEM" for each problem. Pure.
absl::StatusOr<AccessRules> ParseAccessFile(std::string_view text, const std::string& path);
// Reads and parses the file; also fails as ReadSmallFile does, and with FAILED_PRECONDITION if it
// has no rule.
absl::StatusOr<AccessRules> ReadAccessFile(const std::string& path);

}  // namespace neurontrace
