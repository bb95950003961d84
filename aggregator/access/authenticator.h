// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/access/access_policy_store.h"
#include "aggregator/access/certificate_ends.h"
#include "aggregator/access/role.h"
#include "aggregator/access/token_reviews.h"
#include "lib/base/clock.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {

// What a caller presents. A plain value.
struct Credentials {
  // Of its verified certificate, as access files write them; empty: it has none.
  std::vector<std::string> identities;
  std::string certificate;           // in PEM
  std::optional<std::string> token;  // a bearer token
};

// Determines who calls from what a connection and a call present. Any thread. Used by
// AuthInterceptor before each call and by handlers within it.
class Authenticator {
 public:
  using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

  // All must outlive this. `tokens` null: Kubernetes tokens are not accepted. `book` has the rules,
  // which are read for each call, so that a change takes effect at once.
  Authenticator(const AccessPolicyStore& book, const Clock& clock, TokenReviews* tokens = nullptr)
      : book_(book), ends_(clock), tokens_(tokens) {}

  // Returns whether Find can wait, for some seconds, for the API server.
  bool can_wait() const { return tokens_ != nullptr; }

  // Returns the owner of the token or of the certificate. If a call presents both, returns a caller
  // that may do only what both may (see Intersect). Fails with UNAUTHENTICATED for invalid
  // credentials or an expired certificate, with PERMISSION_DENIED and advice if no rule matches,
  // and with UNAVAILABLE if a token cannot be verified now. A message says what the caller has to
  // change and contains no token.
  absl::StatusOr<Caller> Find(const grpc::AuthContext& context, const Metadata& metadata) const;
  // Does the same for what a browser presents at the page's port.
  absl::StatusOr<Caller> Find(const Credentials& credentials) const;

 private:
  // Return the caller of one kind of credential. Fail as Find does.
  absl::StatusOr<Caller> ByCertificate(const Credentials& credentials) const;
  absl::StatusOr<Caller> ByToken(const std::string& token) const;
  absl::StatusOr<Caller> ByServiceAccount(const std::string& token) const;

  const AccessPolicyStore& book_;
  // Mutable, because a cache changes no result.
  mutable CertificateEnds ends_;
  TokenReviews* const tokens_;
};

}  // namespace neurontrace
