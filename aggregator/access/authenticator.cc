// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/authenticator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "aggregator/access/visibility.h"
#include "lib/base/clean_text.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// The header of gRPC metadata that carries a token (RFC 6750).
constexpr char kAuthorization[] = "authorization";
constexpr std::string_view kBearer = "Bearer ";

// The view is valid while the metadata or the context is.
std::string_view ViewOf(grpc::string_ref text) { return {text.data(), text.size()}; }

// Returns the identities in the certificate, as access files write them. One certificate can have
// several of each kind.
std::vector<std::string> IdentitiesOf(const grpc::AuthContext& context) {
  constexpr std::pair<const char*, const char*> kKinds[] = {
      {"peer_uri", "uri:"}, {"peer_dns", "dns:"}, {"x509_common_name", "cn:"}};
  std::vector<std::string> identities;
  for (const auto& [property, kind] : kKinds) {
    for (const grpc::string_ref& value : context.FindPropertyValues(property)) {
      identities.push_back(kind + std::string(ViewOf(value)));
    }
  }
  return identities;
}

}  // namespace

absl::StatusOr<Caller> Authenticator::Find(const grpc::AuthContext& context,
                                           const Metadata& metadata) const {
  Credentials credentials{.identities = IdentitiesOf(context)};
  if (const auto pem = context.FindPropertyValues("x509_pem_cert"); !pem.empty()) {
    credentials.certificate = ViewOf(pem.front());
  }
  if (const auto header = metadata.find(kAuthorization); header != metadata.end()) {
    const std::string_view value = ViewOf(header->second);
    // Two headers could be read differently by different programs, so they are refused.
    if (!value.starts_with(kBearer) || metadata.count(kAuthorization) > 1) {
      return absl::UnauthenticatedError("the call's credentials are not a bearer token");
    }
    credentials.token = value.substr(kBearer.size());
  }
  return Find(credentials);
}

// A token, if there is one, decides who calls; the certificate of the connection can only limit it.
absl::StatusOr<Caller> Authenticator::Find(const Credentials& credentials) const {
  if (!credentials.token) {
    if (credentials.identities.empty()) {
      return absl::UnauthenticatedError(
          "the call has neither a certificate (--tls-cert, --tls-key) nor a token (--token-file)");
    }
    return ByCertificate(credentials);
  }
  ASSIGN_OR_RETURN(const Caller by_token, ByToken(*credentials.token));
  if (credentials.identities.empty()) return by_token;
  const auto by_certificate = ByCertificate(credentials);
  // A certificate that no rule matches identifies a connection and limits nobody.
  if (absl::IsPermissionDenied(by_certificate.status())) return by_token;
  RETURN_IF_ERROR(by_certificate.status());
  return Intersect(*by_certificate, by_token);
}

// The expiry is checked before the rules, as an expired certificate identifies nobody.
absl::StatusOr<Caller> Authenticator::ByCertificate(const Credentials& credentials) const {
  RETURN_IF_ERROR(ends_.Check(credentials.certificate));
  std::optional<Caller> caller = book_.rules()->ByCertificate(credentials.identities);
  if (caller) return *std::move(caller);
  return absl::PermissionDeniedError(
      CleanText(fmt::format("no access rule of the aggregator matches this certificate ({}); add a "
                            "rule to its --access file or, without that file, a URI "
                            "neurontrace:ROLE to the certificate (docs/operator/security.md)",
                            fmt::join(credentials.identities, ", ")),
                limits::kAuditTextBytesMax));
}

// Tokens of the access file come first: they need no server.
absl::StatusOr<Caller> Authenticator::ByToken(const std::string& token) const {
  if (token.size() > limits::kTokenBytesMax) {
    return absl::UnauthenticatedError("the token is longer than every known token");
  }
  std::optional<Caller> caller = book_.rules()->ByToken(token);
  if (caller) return *std::move(caller);
  // Tokens of Kubernetes are JWTs, which have two dots; chosen tokens rarely do.
  if (tokens_ != nullptr && std::count(token.begin(), token.end(), '.') == 2) {
    return ByServiceAccount(token);
  }
  return absl::UnauthenticatedError(
      "the token is unknown or outdated; add its SHA-256 to the aggregator's --access file");
}

// The same rules are used before and after the question, even if the file changes meanwhile.
absl::StatusOr<Caller> Authenticator::ByServiceAccount(const std::string& token) const {
  const std::shared_ptr<const AccessRules> rules = book_.rules();
  ASSIGN_OR_RETURN(const std::string account,
                   tokens_->AccountOf(token, [&rules](std::string_view claimed) {
                     return rules->ByServiceAccount(claimed).has_value();
                   }));
  // Decided by the account that the server confirmed, not by the one that the token claims.
  std::optional<Caller> caller = rules->ByServiceAccount(account);
  if (caller) return *std::move(caller);
  return MakeStatus(absl::StatusCode::kPermissionDenied,
                    "no rule of the aggregator's --access file has service-account = \"{}\"",
                    account);
}

}  // namespace neurontrace
