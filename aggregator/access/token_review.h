// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

// Tokens of Kubernetes service accounts: what one reports about itself, and the question to the API
// server (TokenReview, authentication.k8s.io/v1) whether that is so. Pure; no text of a token or an
// answer is in any error.
namespace neurontrace {

// What a token claims. Anybody can write such a thing: it is good for refusing a token without
// asking, and for nothing else.
struct TokenClaims {
  std::string service_account;       // "NAMESPACE/NAME"
  uint64_t expires_realtime_ns = 0;  // UINT64_MAX: it does not say
  bool is_for_audience = false;
};
// Nothing for what is no JWT of a service account.
std::optional<TokenClaims> ReadTokenClaims(std::string_view token, std::string_view audience);

// "NAMESPACE/NAME" of "system:serviceaccount:NAMESPACE:NAME"; nothing for other users.
std::optional<std::string> ServiceAccountOfUser(std::string_view user);

// The body of the question.
std::string TokenReviewRequest(std::string_view token, std::string_view audience);

// Who the token is, as "NAMESPACE/NAME", by the server's answer; nothing: nobody, or not for this
// audience, or no service account. UNAVAILABLE for what is no answer.
absl::StatusOr<std::optional<std::string>> ReadTokenReview(std::string_view answer,
                                                           std::string_view audience);

}  // namespace neurontrace
