// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/role_credentials.h"

#include <simdjson.h>

#include <algorithm>

#include "aggregator/deliver/s3_xml.h"
#include "lib/base/clean_text.h"
#include "lib/base/small_file.h"
#include "lib/base/status.h"
#include "lib/trace/access_limits.h"
#include "lib/trace/export_limits.h"

namespace neurontrace {
namespace {

using std::chrono::milliseconds;

// For a whole request to a service that the environment names.
constexpr milliseconds kServiceTime(10'000);
// On an instance the service answers within milliseconds; elsewhere nobody answers, and each export
// would wait this long.
constexpr milliseconds kInstanceTime(2'000);
constexpr milliseconds kInstanceConnectTime(1'000);
// Bytes of foreign texts in messages, and nesting of JSON in an answer.
constexpr size_t kRoleWordsBytes = 300;
constexpr size_t kJsonDepthMax = 8;
constexpr std::string_view kRolesPath = "/latest/meta-data/iam/security-credentials/";

// A role's credentials always have a session token and an end.
bool IsWhole(const S3Credentials& credentials) {
  return !credentials.key_id.empty() && !credentials.secret.empty() &&
         !credentials.session_token.empty() && credentials.end_realtime_ns != 0;
}

// Keys and tokens become parts of headers: a line break in one would add a header.
bool IsHeaderText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// The service answered and refuses: only 5xx and 429 may pass with time.
absl::Status Refusal(const std::string& what, const HttpReply& reply, const std::string& words) {
  const bool can_pass = reply.status / 100 == 5 || reply.status == 429;
  return MakeStatus(
      can_pass ? absl::StatusCode::kUnavailable : absl::StatusCode::kFailedPrecondition,
      "{}: HTTP {}{}{}", what, reply.status, words.empty() ? "" : ", ", words);
}

// For a request that got no reply of HTTP at all.
absl::Status NoAnswer(const std::string& what, const absl::Status& status) {
  // An untrusted certificate or an answer that is too large would be the same the next time.
  return MakeStatus(absl::IsUnavailable(status) ? absl::StatusCode::kUnavailable
                                                : absl::StatusCode::kFailedPrecondition,
                    "{}: {}", what, std::string(status.message()));
}

// Returns whether plain HTTP is acceptable: for this machine, and for the link-local addresses of
// ECS (169.254.170.2) and of EKS Pod Identity (169.254.170.23 and fd00:ec2::23).
bool IsContainerHost(std::string_view host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.") ||
         host == "169.254.170.2" || host == "169.254.170.23" || host == "[fd00:ec2::23]";
}

// Returns the host of a URL, with the brackets of an IPv6 address. Requires "://" in it.
std::string_view HostOf(std::string_view url) {
  url.remove_prefix(url.find("://") + 3);
  url = url.substr(0, url.find_first_of("/?#"));
  if (url.starts_with("[")) return url.substr(0, url.find(']') + 1);
  return url.substr(0, url.find(':'));
}

// Refuses names such as 127.evil.example, which begin like an address.
bool IsAddressOrLocalhost(std::string_view host) {
  return host == "localhost" || host.starts_with("[") ||
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

// Returns an empty URL if none is named. The relative form wins, as in AWS's SDKs.
absl::StatusOr<std::string> ContainerUrl(const Environment& environment) {
  if (const std::string path = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
      !path.empty()) {
    if (path.starts_with('/')) return "http://169.254.170.2" + path;
    return FailedPrecondition(
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is '{}', but must begin with /",
        CleanText(path, kRoleWordsBytes));
  }
  std::string url = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (url.empty() || url.starts_with("https://")) return url;
  if (url.starts_with("http://") && url.find('@') == std::string::npos &&
      IsAddressOrLocalhost(HostOf(url)) && IsContainerHost(HostOf(url))) {
    return url;
  }
  return FailedPrecondition(
      "AWS_CONTAINER_CREDENTIALS_FULL_URI is '{}', but must use https or be an address of this "
      "machine, ECS or EKS",
      CleanText(url, kRoleWordsBytes));
}

// Returns an empty token if none is asked for. The file wins, because it is renewed while a
// variable is not.
absl::StatusOr<std::string> ContainerToken(const Environment& environment) {
  const std::string path = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  if (!path.empty()) return ReadTokenFile(path, limits::kTokenBytesMax);
  std::string token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (token.find_first_of("\r\n") != std::string::npos) {
    return FailedPrecondition("AWS_CONTAINER_AUTHORIZATION_TOKEN contains no token");
  }
  return token;
}

}  // namespace

std::string_view AwsDomain(std::string_view region) {
  return region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
}

std::optional<S3Credentials> ReadRoleJson(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (text.empty() || text.size() > limits::kRoleAnswerBytesMax ||
      // Allocated for these limits only, so that a hostile answer can use neither memory nor stack.
      parser.allocate(limits::kRoleAnswerBytesMax, kJsonDepthMax) != simdjson::SUCCESS ||
      parser.parse(std::string(text)).get(root) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  const auto value = [&](const char* name) {
    std::string_view found;
    if (root[name].get(found) != simdjson::SUCCESS || !IsHeaderText(found)) return std::string();
    return std::string(found);
  };
  S3Credentials credentials{.key_id = value("AccessKeyId"),
                            .secret = value("SecretAccessKey"),
                            .session_token = value("Token"),
                            .end_realtime_ns = ParseS3Time(value("Expiration"))};
  if (!IsWhole(credentials)) return std::nullopt;
  return credentials;
}

std::optional<S3Credentials> ReadWebIdentityAnswer(std::string_view xml) {
  const auto value = [&](std::string_view name) {
    std::string found = XmlText(xml, name);
    return IsHeaderText(found) ? found : std::string();
  };
  S3Credentials credentials{.key_id = value("AccessKeyId"),
                            .secret = value("SecretAccessKey"),
                            .session_token = value("SessionToken"),
                            .end_realtime_ns = ParseS3Time(value("Expiration"))};
  if (!IsWhole(credentials)) return std::nullopt;
  return credentials;
}

absl::StatusOr<std::optional<S3Credentials>> WebIdentityCredentials(const RoleQuestion& question) {
  const std::string path = question.environment("AWS_WEB_IDENTITY_TOKEN_FILE");
  const std::string role = question.environment("AWS_ROLE_ARN");
  if (path.empty()) return std::nullopt;
  if (role.empty()) {
    return FailedPrecondition(
        "AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not; set both");
  }
  ASSIGN_OR_RETURN(const std::string token, ReadTokenFile(path, limits::kTokenBytesMax));
  std::string session = question.environment("AWS_ROLE_SESSION_NAME");
  if (session.empty()) session = "neurontrace";
  std::string endpoint = question.environment("AWS_ENDPOINT_URL_STS");
  if (endpoint.empty()) {
    endpoint = fmt::format("https://sts.{}.{}/", question.region, AwsDomain(question.region));
  }
  const std::string body = fmt::format(
      "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName={}"
      "&WebIdentityToken={}",
      UrlEscaped(role), UrlEscaped(session), UrlEscaped(token));
  // The token is in the body, so that it appears in no URL and no message.
  const std::string what = fmt::format("role {} (AWS_ROLE_ARN)", CleanText(role, kRoleWordsBytes));
  const auto reply =
      question.http.Send({.method = "POST",
                          .url = endpoint,
                          .headers = {"Content-Type: application/x-www-form-urlencoded"},
                          .body = body,
                          .authorities = question.authorities,
                          .time = kServiceTime,
                          .reply_bytes_max = limits::kRoleAnswerBytesMax});
  if (!reply.ok()) return NoAnswer(what, reply.status());
  if (reply->status != 200) {
    return Refusal(what, *reply,
                   fmt::format("{}: {}", CleanText(XmlText(reply->body, "Code"), kRoleWordsBytes),
                               CleanText(XmlText(reply->body, "Message"), kRoleWordsBytes)));
  }
  auto credentials = ReadWebIdentityAnswer(reply->body);
  if (!credentials) return FailedPrecondition("{}: the answer has no credentials", what);
  return credentials;
}

absl::StatusOr<std::optional<S3Credentials>> ContainerCredentials(const RoleQuestion& question) {
  ASSIGN_OR_RETURN(const std::string url, ContainerUrl(question.environment));
  if (url.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(const std::string token, ContainerToken(question.environment));
  HttpRequest request{.url = url,
                      .authorities = question.authorities,
                      .through_proxy = false,
                      .time = kServiceTime,
                      .reply_bytes_max = limits::kRoleAnswerBytesMax};
  if (!token.empty()) request.headers.push_back("Authorization: " + token);
  const std::string what = "the container's role (AWS_CONTAINER_CREDENTIALS_*_URI)";
  const auto reply = question.http.Send(request);
  if (!reply.ok()) return NoAnswer(what, reply.status());
  if (reply->status != 200) return Refusal(what, *reply, CleanText(reply->body, kRoleWordsBytes));
  auto credentials = ReadRoleJson(reply->body);
  if (!credentials) return FailedPrecondition("{}: the answer has no credentials", what);
  return credentials;
}

absl::StatusOr<std::optional<S3Credentials>> InstanceCredentials(const RoleQuestion& question) {
  if (question.environment("AWS_EC2_METADATA_DISABLED") == "true") return std::nullopt;
  std::string endpoint = question.environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (endpoint.empty()) endpoint = "http://169.254.169.254";
  while (endpoint.ends_with('/')) endpoint.pop_back();
  // Version 2 of the service demands a token by PUT first, which a request forged through a proxy
  // or a redirection usually cannot send.
  HttpRequest request{.method = "PUT",
                      .url = endpoint + "/latest/api/token",
                      .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 60"},
                      .through_proxy = false,
                      .connect_time = kInstanceConnectTime,
                      .time = kInstanceTime,
                      .reply_bytes_max = limits::kRoleAnswerBytesMax};
  // Nobody answers outside of EC2: that is no error, and ends the search for a role.
  const auto token = question.http.Send(request);
  if (!token.ok() || token->status != 200 || !IsHeaderText(token->body)) return std::nullopt;
  request.method = "GET";
  request.headers = {"X-aws-ec2-metadata-token: " + token->body};
  request.url = fmt::format("{}{}", endpoint, kRolesPath);
  const std::string what = "the instance's role (EC2's metadata service)";
  const auto roles = question.http.Send(request);
  if (!roles.ok()) return NoAnswer(what, roles.status());
  // The instance has no role.
  if (roles->status == 404) return std::nullopt;
  if (roles->status != 200) return Refusal(what, *roles, "");
  // An instance has at most one role; the second answer has its credentials.
  const std::string role = roles->body.substr(0, roles->body.find('\n'));
  request.url += UrlEscaped(role);
  const auto reply = question.http.Send(request);
  if (!reply.ok()) return NoAnswer(what, reply.status());
  if (reply->status != 200) return Refusal(what, *reply, "");
  auto credentials = ReadRoleJson(reply->body);
  if (!credentials) return FailedPrecondition("{}: the answer has no credentials", what);
  return credentials;
}

}  // namespace neurontrace
