// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "aggregator/access/access_book.h"
#include "aggregator/access/role.h"

namespace neurontrace {

// From what a connection and a call show to who calls. Any thread.
class CallerFinder {
 public:
  using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

  // `book` outlives it.
  explicit CallerFinder(const AccessBook& book) : book_(book) {}

  // A token counts before a certificate: who shows both means it. UNAUTHENTICATED, or
  // PERMISSION_DENIED for a certificate that no rule fits, with the way out.
  absl::StatusOr<Caller> Find(const grpc::AuthContext& context, const Metadata& metadata) const;

 private:
  absl::StatusOr<Caller> ByToken(const std::string& token) const;

  const AccessBook& book_;
};

}  // namespace neurontrace
