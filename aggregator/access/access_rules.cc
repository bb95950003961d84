// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/access_rules.h"

#include <algorithm>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/base/sha256.h"
#include "lib/base/small_file.h"
#include "lib/base/status.h"
#include "lib/base/toml_file.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {
namespace {

// The beginning of a URI that states a role, as IdentitiesOf writes it.
constexpr std::string_view kRoleUri = "uri:neurontrace:";
constexpr size_t kHashDigits = 2 * kSha256Bytes;

// Returns whether any pattern matches (MatchesPattern in role.h).
bool AnyMatches(const std::vector<std::string>& patterns, std::string_view text) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return MatchesPattern(pattern, text); });
}

// Without a file: the role is in a URI of the certificate, the name in any other field. Returns
// nullopt if the certificate states no role.
std::optional<Caller> CallerInCertificate(const std::vector<std::string>& identities) {
  std::optional<Caller> caller;
  for (const std::string& identity : identities) {
    if (!identity.starts_with(kRoleUri)) continue;
    const auto role = RoleOf(std::string_view(identity).substr(kRoleUri.size()));
    // Two roles in one certificate are a mistake; the lesser one is safer.
    if (role && (!caller || *role < caller->role)) caller = Caller{.role = *role};
  }
  if (!caller) return std::nullopt;
  // The common name is preferred to a DNS name.
  for (const std::string_view kind : {"cn:", "dns:"}) {
    for (const std::string& identity : identities) {
      if (!caller->name.empty() || !identity.starts_with(kind)) continue;
      caller->name = CleanText(identity.substr(kind.size()), limits::kAccessNameBytesMax);
    }
  }
  if (caller->name.empty()) caller->name = ToString(caller->role);
  return caller;
}

// This check and those below return what is wrong with a value, for a message that follows its key;
// empty: nothing. They never quote it.
std::string CheckCertificatePattern(std::string_view pattern) {
  for (const std::string_view kind : {"dns:", "uri:", "cn:"}) {
    if (pattern.starts_with(kind) && pattern.size() > kind.size()) return "";
  }
  return "must be dns:NAME, uri:URI or cn:NAME, as in the certificate; a * at the end matches any "
         "suffix";
}

// Hashes are lower-case, because they are compared as text.
std::string CheckHash(std::string_view hash) {
  const bool good = hash.size() == kHashDigits &&
                    hash.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!good) return "must be 64 hexadecimal digits, as printed by `printf %s TOKEN | sha256sum`";
  // A hash made from an unset variable would admit everybody who presents nothing.
  static const std::string kNothing = Sha256HexOf("");
  static const std::string kNewline = Sha256HexOf("\n");
  if (hash == kNothing || hash == kNewline) {
    return "is the hash of an empty string; check that the token was set when the hash was made";
  }
  return "";
}

// A * can only be at the end, so the namespace is always whole.
std::string CheckServiceAccount(std::string_view account) {
  const size_t slash = account.find('/');
  const bool is_one = slash != std::string_view::npos && slash > 0 && slash + 1 < account.size() &&
                      account.find_first_of("/ ", slash + 1) == std::string_view::npos;
  return is_one ? "" : "must be NAMESPACE/NAME; a * at the end matches any suffix of the name";
}

// Without the key all jobs are meant, so a * alone is more likely a mistake.
std::string CheckJobPattern(std::string_view pattern) {
  return pattern == "*" ? "is *, which means all jobs; omit the key" : "";
}

// The same as for jobs.
std::string CheckNamespacePattern(std::string_view pattern) {
  return pattern == "*" ? "is *, which means all namespaces; omit the key" : "";
}

// Must be written as the kernel's numbers are: "07" would match nobody.
std::string CheckUid(std::string_view uid) {
  const bool good = !uid.empty() && uid.size() <= 10 && (uid == "0" || uid[0] != '0') &&
                    uid.find_first_not_of("0123456789") == std::string_view::npos;
  return good ? "" : "must be a numeric user id, as printed by `id -u`";
}

// Returns a key of the file that takes one string or an array of them. `check` judges each value; a
// user id may also be a TOML integer.
TomlKey ListKey(std::string_view name, std::vector<std::string>& values,
                std::string (*check)(std::string_view)) {
  const bool is_uid = check == CheckUid;
  const auto take = [&values, check, is_uid](const TomlNode& value) -> std::string {
    if (value.kind != TomlKind::kString && !(is_uid && value.kind == TomlKind::kInteger)) {
      return "must be a quoted string or an array of strings";
    }
    const std::string& text = value.text;
    if (text.find(',') != std::string::npos) {
      return "contains a comma; write several values as an array, such as [\"a\", \"b\"]";
    }
    if (text.find('*') < text.size() - 1) return "has a * that is not at the end of a name";
    if (std::string problem = check(text); !problem.empty()) return problem;
    if (values.size() == limits::kAccessPatternsMax) {
      return fmt::format("has more than {} values; add another rule for the rest",
                         limits::kAccessPatternsMax);
    }
    values.push_back(text);
    return "";
  };
  // A token may have been entered instead of its hash, so problems must not quote the value.
  return {.name = name, .take = take, .is_list = true, .is_secret = check == CheckHash};
}

// Returns what is wrong with the name of a rule. It appears in logs, so it must be printable.
std::string CheckName(const std::string& name) {
  if (!name.empty() && name.size() <= limits::kAccessNameBytesMax &&
      CleanText(name, name.size()) == name) {
    return "";
  }
  return fmt::format("a rule must have a printable name of 1 to {} bytes, such as [alice]",
                     limits::kAccessNameBytesMax);
}

// Returns what the rule as a whole lacks; empty: nothing. Limits to jobs make sense only for roles
// that read or start captures.
std::string CheckRule(const AccessRule& rule, bool has_role) {
  if (!has_role) return "has no role; set agent, viewer, operator or admin";
  if (rule.certificates.empty() && rule.token_hashes.empty() && rule.service_accounts.empty()) {
    return "matches no caller; add certificate, token-sha256 or service-account";
  }
  const Role role = rule.caller.role;
  if (!rule.caller.is_limited() || (role != Role::kAgent && role != Role::kAdmin)) return "";
  return fmt::format(
      "jobs applies only to viewers and operators; the rights of an {} are not per job",
      ToString(role));
}

// Reads one rule and adds all of its problems. The result is only used if there are none.
AccessRule ParseRule(const TomlNode& section, TomlProblems& problems) {
  AccessRule rule;
  bool has_role = false;
  const auto take_role = [&](const TomlNode& value) -> std::string {
    const auto role = RoleOf(value.text);
    if (!role) return "must be one of agent, viewer, operator, admin";
    rule.caller.role = *role;
    has_role = true;
    return "";
  };
  rule.caller.name = section.key;
  // Checks continue after a bad name, so that one run of the program reports every problem.
  if (std::string words = CheckName(section.key); !words.empty()) problems.Add(section, "", words);
  const bool is_good =
      ParseTomlSection(section,
                       {ListKey("certificate", rule.certificates, CheckCertificatePattern),
                        ListKey("token-sha256", rule.token_hashes, CheckHash),
                        ListKey("service-account", rule.service_accounts, CheckServiceAccount),
                        {.name = "role", .take = take_role},
                        ListKey("jobs", rule.caller.jobs, CheckJobPattern),
                        ListKey("job-namespaces", rule.caller.namespaces, CheckNamespacePattern),
                        ListKey("job-uids", rule.caller.uids, CheckUid)},
                       problems);
  if (!is_good) return rule;  // what the rule lacks may follow from that
  if (std::string words = CheckRule(rule, has_role); !words.empty()) {
    problems.Add(section, section.key, words);
  }
  return rule;
}

}  // namespace

// Rules come first, identities second: the first rule of the file decides, whichever identity it
// matches.
std::optional<Caller> AccessRules::ByCertificate(const std::vector<std::string>& identities) const {
  if (!by_file_) return CallerInCertificate(identities);
  for (const AccessRule& rule : rules_) {
    for (const std::string& identity : identities) {
      if (AnyMatches(rule.certificates, identity)) return rule.caller;
    }
  }
  return std::nullopt;
}

std::optional<Caller> AccessRules::ByToken(std::string_view token) const {
  // An empty token must not match, whatever hashes the file has.
  if (token.empty()) return std::nullopt;
  // Only hashes are compared, so the time that this takes reveals nothing about a token.
  const std::string hash = Sha256HexOf(token);
  for (const AccessRule& rule : rules_) {
    const auto& hashes = rule.token_hashes;
    if (std::find(hashes.begin(), hashes.end(), hash) != hashes.end()) return rule.caller;
  }
  return std::nullopt;
}

// The caller knows whether the account is confirmed or only claimed.
std::optional<Caller> AccessRules::ByServiceAccount(std::string_view account) const {
  for (const AccessRule& rule : rules_) {
    if (AnyMatches(rule.service_accounts, account)) return rule.caller;
  }
  return std::nullopt;
}

bool AccessRules::has_agents() const {
  return !by_file_ || std::any_of(rules_.begin(), rules_.end(), [](const AccessRule& rule) {
    return rule.caller.role == Role::kAgent;
  });
}

bool AccessRules::has_service_accounts() const {
  return std::any_of(rules_.begin(), rules_.end(),
                     [](const AccessRule& rule) { return !rule.service_accounts.empty(); });
}

// Reports the problems of the whole file at once, and gives no rules if there is any.
absl::StatusOr<AccessRules> ParseAccessFile(std::string_view text, const std::string& path) {
  ASSIGN_OR_RETURN(const TomlNode root, ParseToml(text, path));
  std::vector<AccessRule> rules;
  TomlProblems problems(path);
  for (const TomlNode& section : root.children) {
    if (section.kind != TomlKind::kTable) {
      problems.Add(section, "", "is outside of a rule; a rule starts with [NAME]");
      // A rule beyond the limit is an error, because ignoring it would change who may do what.
    } else if (rules.size() == limits::kAccessRulesMax) {
      problems.Add(section, "", fmt::format("more than {} rules", limits::kAccessRulesMax));
      break;
    } else {
      rules.push_back(ParseRule(section, problems));
    }
  }
  RETURN_IF_ERROR(problems.status());
  return AccessRules(std::move(rules));
}

// A file without a rule is refused: it is most probably being written.
absl::StatusOr<AccessRules> ReadAccessFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, limits::kAccessFileBytesMax));
  ASSIGN_OR_RETURN(AccessRules rules, ParseAccessFile(text, path));
  if (rules.size() > 0) return rules;
  return FailedPrecondition(
      "{} has no rules ({} bytes), so all callers and agents would be refused; if it was "
      "truncated, write it under another name and rename it",
      path, text.size());
}

}  // namespace neurontrace
