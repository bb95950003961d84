// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/access/access_book.h"
#include "aggregator/access/certificate_ends.h"
#include "aggregator/access/role.h"
#include "aggregator/access/token_reviews.h"
#include "base/clock.h"

namespace neurontrace {

// From what a connection and a call show to who calls. Any thread.
class CallerFinder {
 public:
  using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

  // All outlive it. `tokens` null: none of Kubernetes' are taken.
  CallerFinder(const AccessBook& book, const Clock& clock, TokenReviews* tokens = nullptr)
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

  const AccessBook& book_;
  mutable CertificateEnds ends_;
  TokenReviews* const tokens_;
};

}  // namespace neurontrace
