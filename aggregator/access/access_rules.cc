// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/access_rules.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/clean_text.h"
#include "base/ini_text.h"
#include "base/sha256.h"
#include "base/small_file.h"
#include "base/status.h"
#include "trace/access_limits.h"

namespace neurontrace {
namespace {

constexpr std::string_view kRoleUri = "uri:neurontrace:";
constexpr size_t kHashDigits = 2 * kSha256Bytes;

bool AnyMatches(const std::vector<std::string>& patterns, std::string_view text) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return MatchesPattern(pattern, text); });
}

// Without a file: the role is in a URI, the name wherever there is one.
std::optional<Caller> CallerInCertificate(const std::vector<std::string>& identities) {
  std::optional<Caller> caller;
  for (const std::string& identity : identities) {
    if (!identity.starts_with(kRoleUri)) continue;
    const auto role = RoleOf(std::string_view(identity).substr(kRoleUri.size()));
    // Two roles in one certificate are a mistake: the lesser one is the safer.
    if (role && (!caller || *role < caller->role)) caller = Caller{.role = *role};
  }
  if (!caller) return std::nullopt;
  for (const std::string_view kind : {"cn:", "dns:"}) {
    for (const std::string& identity : identities) {
      if (!caller->name.empty() || !identity.starts_with(kind)) continue;
      caller->name = CleanText(identity.substr(kind.size()), limits::kAccessNameBytesMax);
    }
  }
  if (caller->name.empty()) caller->name = WordOf(caller->role);
  return caller;
}

std::string CheckCertificatePattern(std::string_view pattern) {
  for (const std::string_view kind : {"dns:", "uri:", "cn:"}) {
    if (pattern.starts_with(kind) && pattern.size() > kind.size()) return "";
  }
  return "is dns:NAME, uri:URI or cn:NAME, as in the certificate; a * at the end stands for any "
         "ending";
}

std::string CheckHash(std::string_view hash) {
  const bool good = hash.size() == kHashDigits &&
                    hash.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!good) return "is 64 hexadecimal digits, as `printf %s TOKEN | sha256sum` prints them";
  // Whoever makes it of a variable that is not set would let in who shows nothing.
  static const std::string kNothing = Sha256HexOf("");
  static const std::string kNewline = Sha256HexOf("\n");
  if (hash == kNothing || hash == kNewline) {
    return "is the hash of an empty text: see that the token was there when it was made";
  }
  return "";
}

std::string CheckServiceAccount(std::string_view account) {
  const size_t slash = account.find('/');
  const bool is_one = slash != std::string_view::npos && slash > 0 && slash + 1 < account.size() &&
                      account.find_first_of("/ ", slash + 1) == std::string_view::npos;
  return is_one ? "" : "is NAMESPACE/NAME; a * at the end stands for any ending of the name";
}

std::string CheckJobPattern(std::string_view pattern) {
  return pattern == "*" ? "of * is all jobs: leave the key out" : "";
}

std::string CheckNamespacePattern(std::string_view pattern) {
  return pattern == "*" ? "of * is all namespaces: leave the key out" : "";
}

// As the kernel's numbers are written: "07" would be nobody's.
std::string CheckUid(std::string_view uid) {
  const bool good = !uid.empty() && uid.size() <= 10 && (uid == "0" || uid[0] != '0') &&
                    uid.find_first_not_of("0123456789") == std::string_view::npos;
  return good ? "" : "is the number of a user, as `id -u` prints it";
}

class Parser {
 public:
  explicit Parser(const std::string& path) : path_(path) {}
  absl::StatusOr<AccessRules> Parse(std::string_view text);

 private:
  void TakeLine(std::string_view line);
  void BeginRule(std::string_view line);
  void TakeKey(std::string_view line);
  std::string TakeValue(std::string_view key, std::string_view value);
  void EndRule();
  void Complain(size_t line, std::string_view words);

  const std::string& path_;
  std::vector<AccessRule> rules_;
  std::string problems_;
  size_t problem_count_ = 0;
  size_t line_ = 0;
  bool in_rule_ = false;
  bool has_bad_line_ = false;  // in the rule at hand: what it lacks may follow from that
  AccessRule rule_;
  size_t rule_line_ = 0;
  std::map<std::string, size_t, std::less<>> key_lines_;
  std::map<std::string, size_t> rule_lines_;
};

absl::StatusOr<AccessRules> Parser::Parse(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // as some editors write it
  while (!text.empty() && problem_count_ < limits::kAccessProblemsMax) {
    ++line_;
    const size_t end = std::min(text.find('\n'), text.size());
    TakeLine(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  EndRule();
  if (problem_count_ > 0) return InvalidArgument("{}", problems_);
  return AccessRules(std::move(rules_));
}

void Parser::TakeLine(std::string_view line) {
  if (line.size() > limits::kAccessLineBytesMax) {
    return Complain(line_,
                    fmt::format("the line is longer than {} bytes", limits::kAccessLineBytesMax));
  }
  line = TrimmedIni(line);
  if (IsIniComment(line)) return;
  if (line[0] == '[') return BeginRule(line);
  TakeKey(line);
}

void Parser::BeginRule(std::string_view line) {
  EndRule();
  in_rule_ = true;
  rule_line_ = line_;
  const size_t close = line.find(']');
  const std::string_view name =
      close == std::string_view::npos ? "" : TrimmedIni(line.substr(1, close - 1));
  const bool alone =
      close != std::string_view::npos && IsIniComment(TrimmedIni(line.substr(close + 1)));
  if (!alone || name.empty() || name.size() > limits::kAccessNameBytesMax ||
      CleanText(name, name.size()) != name) {
    return Complain(line_, "a rule begins with a name alone in brackets, as [alice]");
  }
  rule_.caller.name = name;
  const auto [known, is_new] = rule_lines_.try_emplace(rule_.caller.name, line_);
  if (!is_new) {
    Complain(line_, fmt::format("there is a rule of this name at line {} already: put both into "
                                "one, or give one of them another name",
                                known->second));
  }
  if (rules_.size() == limits::kAccessRulesMax) {
    Complain(line_, fmt::format("more than {} rules", limits::kAccessRulesMax));
  }
}

void Parser::TakeKey(std::string_view line) {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) {
    return Complain(line_, fmt::format("'{}' is no `key = value`", CleanText(line, 80)));
  }
  if (!in_rule_) return Complain(line_, "stands before the first rule: begin with [NAME]");
  const std::string_view key = TrimmedIni(line.substr(0, equals));
  const auto [known, is_new] = key_lines_.try_emplace(std::string(key), line_);
  if (!is_new) {
    return Complain(line_,
                    fmt::format("{} stands at line {} already", CleanText(key, 80), known->second));
  }
  const auto value = IniValueOf(line.substr(equals + 1));
  std::string problem;
  if (!value) {
    problem = "has a quote that is not closed, or something behind it";
  } else if (value->empty()) {
    problem = "has no value: give one, or remove the line";
  } else {
    problem = TakeValue(key, *value);
  }
  if (!problem.empty()) Complain(line_, fmt::format("{} {}", CleanText(key, 80), problem));
}

// Returns what is wrong with the value; empty: nothing.
std::string Parser::TakeValue(std::string_view key, std::string_view value) {
  if (key == "role") {
    const auto role = RoleOf(value);
    if (!role) return "is one of agent, viewer, operator, admin";
    rule_.caller.role = *role;
    return "";
  }
  struct List {
    std::string_view key;
    std::vector<std::string>& values;
    std::string (*check)(std::string_view);
  };
  const List lists[] = {{"certificate", rule_.certificates, CheckCertificatePattern},
                        {"token-sha256", rule_.token_hashes, CheckHash},
                        {"service-account", rule_.service_accounts, CheckServiceAccount},
                        {"jobs", rule_.caller.jobs, CheckJobPattern},
                        {"job-namespaces", rule_.caller.namespaces, CheckNamespacePattern},
                        {"job-uids", rule_.caller.uids, CheckUid}};
  for (const List& list : lists) {
    if (list.key != key) continue;
    while (true) {
      const size_t comma = std::min(value.find(','), value.size());
      const std::string_view one = TrimmedIni(value.substr(0, comma));
      if (one.empty()) return "has a comma with nothing beside it";
      if (one.find('*') < one.size() - 1) return "has a * that is not at the end of a name";
      if (one.find('"') != std::string_view::npos || one.front() == '\'') {
        return "has a quote: names stand without, or the whole value between two";
      }
      if (std::string problem = list.check(one); !problem.empty()) return problem;
      if (list.values.size() == limits::kAccessPatternsMax) {
        return fmt::format("has more than {} values: make another rule for them",
                           limits::kAccessPatternsMax);
      }
      list.values.emplace_back(one);
      if (comma == value.size()) return "";
      value.remove_prefix(comma + 1);
    }
  }
  return "is no key: the keys are certificate, token-sha256, service-account, role, jobs, "
         "job-namespaces, job-uids";
}

void Parser::EndRule() {
  if (!std::exchange(in_rule_, false)) return;
  const bool has_credential =
      !rule_.certificates.empty() || !rule_.token_hashes.empty() || !rule_.service_accounts.empty();
  if (!has_bad_line_ && !key_lines_.contains("role")) {
    Complain(rule_line_, "has no role: agent, viewer, operator or admin");
  } else if (!has_bad_line_ && !has_credential) {
    Complain(rule_line_, "fits nobody: give it a certificate, token-sha256 or service-account");
  } else if (!has_bad_line_ && rule_.caller.is_limited() &&
             (rule_.caller.role == Role::kAgent || rule_.caller.role == Role::kAdmin)) {
    Complain(rule_line_, fmt::format("jobs are for viewers and operators: what an {} may do is "
                                     "not of one job",
                                     WordOf(rule_.caller.role)));
  }
  rules_.push_back(std::exchange(rule_, {}));
  key_lines_.clear();
  has_bad_line_ = false;
}

void Parser::Complain(size_t line, std::string_view words) {
  has_bad_line_ = true;
  if (problem_count_ >= limits::kAccessProblemsMax) return;
  const std::string rule =
      rule_.caller.name.empty() ? "" : fmt::format("[{}]: ", rule_.caller.name);
  problems_ +=
      fmt::format("{}{}:{}: {}{}", problem_count_ == 0 ? "" : "\n", path_, line, rule, words);
  ++problem_count_;
}

}  // namespace

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
  if (token.empty()) return std::nullopt;
  // Compared are hashes: the time it takes says nothing about a token.
  const std::string hash = Sha256HexOf(token);
  for (const AccessRule& rule : rules_) {
    const auto& hashes = rule.token_hashes;
    if (std::find(hashes.begin(), hashes.end(), hash) != hashes.end()) return rule.caller;
  }
  return std::nullopt;
}

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

absl::StatusOr<AccessRules> ParseAccessFile(std::string_view text, const std::string& path) {
  return Parser(path).Parse(text);
}

absl::StatusOr<AccessRules> ReadAccessFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, limits::kAccessFileBytesMax));
  ASSIGN_OR_RETURN(AccessRules rules, ParseAccessFile(text, path));
  if (rules.size() > 0) return rules;
  return FailedPrecondition(
      "{} has no rule ({} bytes): nobody could call, and no agent could deliver. Was it cut off "
      "while it was written? Write it under another name and rename it",
      path, text.size());
}

}  // namespace neurontrace
