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

// What a token claims. Anybody can write such claims: they serve to refuse a token without asking,
// and for nothing else. Read from the payload of a JWT (RFC 7519) without verifying its signature.
struct TokenClaims {
  std::string service_account;       // "NAMESPACE/NAME"
  uint64_t expires_realtime_ns = 0;  // UINT64_MAX: no expiry stated
  // Whether `aud` names the audience that was asked for.
  bool is_for_audience = false;
};
// Returns nullopt if the token is no JWT of a service account. Does not check its signature. A
// claim that is malformed counts against the token.
std::optional<TokenClaims> ReadTokenClaims(std::string_view token, std::string_view audience);

// Converts "system:serviceaccount:NAMESPACE:NAME" to "NAMESPACE/NAME"; nullopt for other users.
std::optional<std::string> ServiceAccountOfUser(std::string_view user);

// Returns the JSON body of the request. The request asks for one audience.
std::string TokenReviewRequest(std::string_view token, std::string_view audience);

// Returns "NAMESPACE/NAME" from the server's answer; nullopt if the token is nobody's, for another
// audience, or of no service account. Fails with UNAVAILABLE if it is no answer. The server
// decides; this only reads its answer. `answer` may be anything.
absl::StatusOr<std::optional<std::string>> ReadTokenReview(std::string_view answer,
                                                           std::string_view audience);

}  // namespace neurontrace
