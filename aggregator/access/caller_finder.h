// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "aggregator/access/access_book.h"
#include "aggregator/access/role.h"
#include "aggregator/access/token_reviews.h"

namespace neurontrace {

// From what a connection and a call show to who calls. Any thread.
class CallerFinder {
 public:
  using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

  // Both outlive it. `tokens` null: none of Kubernetes' are taken.
  explicit CallerFinder(const AccessBook& book, TokenReviews* tokens = nullptr)
      : book_(book), tokens_(tokens) {}

  // Whether Find can wait for somebody: for the API server, for some seconds.
  bool may_wait() const { return tokens_ != nullptr; }

  // A token counts before a certificate: who shows both means it. UNAUTHENTICATED;
  // PERMISSION_DENIED for who is somebody that no rule fits, with the way out; UNAVAILABLE where
  // nobody can say now who it is.
  absl::StatusOr<Caller> Find(const grpc::AuthContext& context, const Metadata& metadata) const;

 private:
  absl::StatusOr<Caller> ByToken(const std::string& token) const;
  absl::StatusOr<Caller> ByServiceAccount(const std::string& token) const;

  const AccessBook& book_;
  TokenReviews* const tokens_;
};

}  // namespace neurontrace
