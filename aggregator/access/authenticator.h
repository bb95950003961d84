// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/access/access_policy_store.h"
#include "aggregator/access/role.h"
#include "aggregator/access/token_reviews.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {

// Checks whether the certificate of a connection has expired: gRPC only checks when the connection
// is made. Caches the expiry of limits::kCertificateEndsKnownMax certificates, as parsing one takes
// longer than most calls. Any thread. Owned by Authenticator.
class CertificateEnds {
 public:
  // `clock` must outlive this.
  explicit CertificateEnds(const Clock& clock, size_t known_max = limits::kCertificateEndsKnownMax)
      : clock_(clock), known_max_(known_max) {}

  // Fails with UNAUTHENTICATED if the certificate has expired, stating when, or cannot be read.
  // `pem` is the certificate's text as gRPC gives it.
  absl::Status Check(std::string_view pem);

  // Returns how many certificates are cached.
  size_t known() const;

 private:
  // The clock by which certificates expire.
  const Clock& clock_;
  const size_t known_max_;
  mutable Mutex mutex_;
  // Seconds since 1970, by the certificate's SHA-256. All are forgotten at the limit.
  std::unordered_map<std::string, int64_t> ends_ NT_GUARDED_BY(mutex_);
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
  bool may_wait() const { return tokens_ != nullptr; }

  // Returns the owner of the token or of the certificate. If a call presents both, returns a caller
  // that may do only what both may (see Intersect). Fails with UNAUTHENTICATED for invalid
  // credentials or an expired certificate, with PERMISSION_DENIED and advice if no rule matches,
  // and with UNAVAILABLE if a token cannot be verified now. A message says what the caller has to
  // change and contains no token.
  absl::StatusOr<Caller> Find(const grpc::AuthContext& context, const Metadata& metadata) const;

 private:
  // Return the caller of one kind of credential. Fail as Find does.
  absl::StatusOr<Caller> ByCertificate(const grpc::AuthContext& context,
                                       const std::vector<std::string>& identities) const;
  absl::StatusOr<Caller> ByToken(const std::string& token) const;
  absl::StatusOr<Caller> ByServiceAccount(const std::string& token) const;

  const AccessPolicyStore& book_;
  // Mutable, because a cache changes no result.
  mutable CertificateEnds ends_;
  TokenReviews* const tokens_;
};

}  // namespace neurontrace
