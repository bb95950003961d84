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

// Whether certificates of connections have ended: gRPC looks at them when a connection is made, and
// never again. Remembers the ends of limits::kCertificateEndsKnownMax, as reading one takes longer
// than most calls. Any thread.
class CertificateEnds {
 public:
  // `clock` outlives it.
  explicit CertificateEnds(const Clock& clock, size_t known_max = limits::kCertificateEndsKnownMax)
      : clock_(clock), known_max_(known_max) {}

  // UNAUTHENTICATED where the certificate is over, with its end, or cannot be read.
  absl::Status Check(std::string_view pem);

  size_t known() const;

 private:
  const Clock& clock_;
  const size_t known_max_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, int64_t> ends_ NT_GUARDED_BY(mutex_);  // by SHA-256
};

// From what a connection and a call show to who calls. Any thread.
class Authenticator {
 public:
  using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

  // All outlive it. `tokens` null: none of Kubernetes' are taken.
  Authenticator(const AccessPolicyStore& book, const Clock& clock, TokenReviews* tokens = nullptr)
      : book_(book), ends_(clock), tokens_(tokens) {}

  // Whether Find can wait for somebody: for the API server, for some seconds.
  bool may_wait() const { return tokens_ != nullptr; }

  // Returns the owner of the token or of the certificate; of a call that shows both, a caller that
  // may do only what both may (see Intersect). Fails with UNAUTHENTICATED, also if the certificate
  // has ended since the connection was made, with PERMISSION_DENIED and the way out if no rule
  // fits, and with UNAVAILABLE if a token cannot be verified now.
  absl::StatusOr<Caller> Find(const grpc::AuthContext& context, const Metadata& metadata) const;

 private:
  absl::StatusOr<Caller> ByCertificate(const grpc::AuthContext& context,
                                       const std::vector<std::string>& identities) const;
  absl::StatusOr<Caller> ByToken(const std::string& token) const;
  absl::StatusOr<Caller> ByServiceAccount(const std::string& token) const;

  const AccessPolicyStore& book_;
  mutable CertificateEnds ends_;
  TokenReviews* const tokens_;
};

}  // namespace neurontrace
