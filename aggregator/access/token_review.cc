// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/token_review.h"

#include <simdjson.h>

#include "absl/strings/escaping.h"
#include "lib/base/json_writer.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {
namespace {

// Both texts come from outside: claims from anybody, answers from the network. They are parsed with
// limits on size and depth, and every field is checked for its type. Tested with arbitrary bytes
// (token_review_fuzzer.cc).

using simdjson::dom::element;

constexpr std::string_view kUserPrefix = "system:serviceaccount:";
// Deeper documents are refused.
constexpr size_t kDepthMax = 16;
constexpr size_t kNameBytesMax = 253;  // of a service account; of a namespace it is 63

// Accepts only a complete document that is no deeper than anything needed here.
bool ParseJson(simdjson::dom::parser& parser, const std::string& text, element& root) {
  if (text.empty() || text.size() > limits::kTokenReviewBytesMax) return false;
  if (parser.allocate(limits::kTokenReviewBytesMax, kDepthMax) != simdjson::SUCCESS) return false;
  return parser.parse(text).get(root) == simdjson::SUCCESS;
}

// Returns whether a name has only the characters of Kubernetes (RFC 1123). Anything else could be
// mistaken for a pattern or a path.
bool IsNameOfKubernetes(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string_view::npos;
}

// Returns whether `list` is the text, or a list that contains it. `aud` is a text or a list (RFC
// 7519, section 4.1.3).
bool Holds(element list, std::string_view text) {
  std::string_view one;
  if (list.get(one) == simdjson::SUCCESS) return one == text;
  simdjson::dom::array array;
  if (list.get(array) != simdjson::SUCCESS) return false;
  for (const element item : array) {
    if (item.get(one) == simdjson::SUCCESS && one == text) return true;
  }
  return false;
}

}  // namespace

// The name may not contain another colon, which the check of characters excludes.
std::optional<std::string> ServiceAccountOfUser(std::string_view user) {
  if (!user.starts_with(kUserPrefix)) return std::nullopt;
  user.remove_prefix(kUserPrefix.size());
  const size_t colon = user.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view space = user.substr(0, colon);
  const std::string_view name = user.substr(colon + 1);
  if (!IsNameOfKubernetes(space) || !IsNameOfKubernetes(name)) return std::nullopt;
  return fmt::format("{}/{}", space, name);
}

// A JWT has three parts separated by dots; the second one is the payload, in base64url.
std::optional<TokenClaims> ReadTokenClaims(std::string_view token, std::string_view audience) {
  const size_t first = token.find('.');
  const size_t second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view middle = token.substr(first + 1, second - first - 1);
  std::string payload;
  if (!absl::WebSafeBase64Unescape({middle.data(), middle.size()}, &payload)) return std::nullopt;
  simdjson::dom::parser parser;
  element root;
  std::string_view subject;
  if (!ParseJson(parser, payload, root) || root["sub"].get(subject) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  auto service_account = ServiceAccountOfUser(subject);
  if (!service_account) return std::nullopt;
  TokenClaims claims{.service_account = *std::move(service_account),
                     .expires_realtime_ns = UINT64_MAX};
  element list;
  claims.is_for_audience = root["aud"].get(list) == simdjson::SUCCESS && Holds(list, audience);
  element expires;
  if (root["exp"].get(expires) == simdjson::SUCCESS) {
    uint64_t seconds = 0;
    // An invalid expiry counts as expired.
    const bool is_time = expires.get(seconds) == simdjson::SUCCESS;
    claims.expires_realtime_ns = !is_time                              ? 0
                                 : seconds > UINT64_MAX / kNsPerSecond ? UINT64_MAX
                                                                       : seconds * kNsPerSecond;
  }
  return claims;
}

// The writer escapes the token, which may be any text.
std::string TokenReviewRequest(std::string_view token, std::string_view audience) {
  JsonWriter out;
  out.Open('{').Member("apiVersion", "authentication.k8s.io/v1").Member("kind", "TokenReview");
  out.Key("spec").Open('{').Member("token", token).Key("audiences");
  return out.Open('[').Value(audience).Close(']').Close('}').Close('}').Take();
}

// Checks the kind first: a proxy may answer with a page of its own. A missing field means that the
// token is not accepted, and never that it is.
absl::StatusOr<std::optional<std::string>> ReadTokenReview(std::string_view answer,
                                                           std::string_view audience) {
  simdjson::dom::parser parser;
  element root;
  element status;
  std::string_view kind;
  if (!ParseJson(parser, std::string(answer), root) ||
      root["kind"].get(kind) != simdjson::SUCCESS || kind != "TokenReview" ||
      root["status"].get(status) != simdjson::SUCCESS || !status.is_object()) {
    return Unavailable("the API server's answer is not a TokenReview");
  }
  bool authenticated = false;
  // The server omits fields that are false.
  if (status["authenticated"].get(authenticated) != simdjson::SUCCESS || !authenticated) {
    return std::optional<std::string>();
  }
  element audiences;
  std::string_view user;
  // A server that does not know audiences names none; the token is then for the server and not for
  // us.
  if (status["audiences"].get(audiences) != simdjson::SUCCESS || !Holds(audiences, audience) ||
      status["user"]["username"].get(user) != simdjson::SUCCESS) {
    return std::optional<std::string>();
  }
  return ServiceAccountOfUser(user);
}

}  // namespace neurontrace
