// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <string>

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

  // A token counts before a certificate: who shows both means it. UNAUTHENTICATED,
  // also where the certificate has ended since the connection was made; PERMISSION_DENIED for who
  // is somebody that no rule fits, with the way out; UNAVAILABLE where nobody can say now who it
  // is.
  absl::StatusOr<Caller> Find(const grpc::AuthContext& context, const Metadata& metadata) const;

 private:
  absl::StatusOr<Caller> ByToken(const std::string& token) const;
  absl::StatusOr<Caller> ByServiceAccount(const std::string& token) const;

  const AccessBook& book_;
  mutable CertificateEnds ends_;
  TokenReviews* const tokens_;
};

}  // namespace neurontrace
