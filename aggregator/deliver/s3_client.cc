// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/s3_client.h"

#include <chrono>
#include <thread>

#include "aggregator/deliver/role_credentials.h"
#include "aggregator/deliver/s3_xml.h"
#include "aggregator/deliver/volume.h"
#include "lib/base/address.h"
#include "lib/base/clean_text.h"
#include "lib/base/clock.h"
#include "lib/base/sha256.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Attempts of one request. The pause between them begins with kFirstPause and quadruples.
constexpr int kTries = 3;
// For all attempts of a request together: a transfer that is slow, but never stalls, would outlive
// the claim on the destination.
constexpr std::chrono::milliseconds kSendTime(kVolumeOperationNs / 1'000'000);
constexpr std::chrono::milliseconds kFirstPause(200);
// Between attempts to get newer credentials while their source does not answer.
constexpr std::chrono::seconds kRenewalPause(30);
// Bytes of the service's own texts in messages.
constexpr size_t kMessageBytes = 300;
constexpr std::string_view kMarkName = "x-amz-meta-neurontrace-upload";

std::string RegionOf(const S3Service& service, const Environment& environment) {
  if (!service.region.empty()) return service.region;
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (std::string region = environment(name); !region.empty()) return region;
  }
  return "us-east-1";
}

// Returns the endpoint with a scheme; AWS's own for the region if none is configured.
std::string EndpointOf(const S3Service& service, const std::string& region) {
  if (service.endpoint.empty()) return fmt::format("https://s3.{}.{}", region, AwsDomain(region));
  if (service.endpoint.find("://") != std::string::npos) return service.endpoint;
  return "https://" + service.endpoint;
}

std::string AuthoritiesOf(const S3Service& service, const Environment& environment) {
  return service.authorities.empty() ? environment("AWS_CA_BUNDLE") : service.authorities;
}

// For a request that got no reply.
absl::Status WithRemedy(const absl::Status& status, const std::string& object) {
  const char* const remedy = absl::IsFailedPrecondition(status)
                                 ? "; pass the certificate of the service's certificate authority "
                                   "to the aggregator with --s3-ca FILE"
                                 : "";
  return absl::Status(status.code(),
                      fmt::format("{}: {}{}", object, std::string(status.message()), remedy));
}

// Returns the service's own text, cleaned, with a remedy if one is known.
std::string ErrorText(const S3Reply& reply) {
  const std::string code = CleanText(XmlText(reply.body, "Code"), kMessageBytes);
  const std::string message = CleanText(XmlText(reply.body, "Message"), kMessageBytes);
  return fmt::format("HTTP {}{}{}{}{}{}", reply.status, code.empty() ? "" : ", ", code,
                     message.empty() ? "" : ": ", message, S3Remedy(reply.status, code));
}

// CompleteMultipartUpload may answer 200 at once and report an error in the body later:
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html
bool HasErrorInside(const S3Request& request, const S3Reply& reply) {
  return request.method == "POST" && reply.status / 100 == 2 &&
         !XmlElements(reply.body, "Error").empty();
}

// Returns whether the reply reports a condition that may pass with time: too many requests, or a
// fault of the service.
bool IsWorthAnotherTry(const S3Request& request, const S3Reply& reply) {
  return HasErrorInside(request, reply) || reply.status == 429 || reply.status == 500 ||
         reply.status == 502 || reply.status == 503 || reply.status == 504;
}

}  // namespace

std::string S3MarkHeader(std::string_view mark) { return fmt::format("{}: {}", kMarkName, mark); }

std::string S3Remedy(int status, std::string_view code) {
  if (code == "RequestTimeTooSkewed") {
    return "; set the clock of the aggregator's host";
  }
  if (code == "NoSuchBucket") {
    return "; create the bucket, or choose another one with --export-root";
  }
  const bool is_of_region = code == "AuthorizationHeaderMalformed" || code == "PermanentRedirect" ||
                            code == "IllegalLocationConstraint" || status == 301;
  if (is_of_region) return "; set the bucket's region with --s3-region";
  // VersityGW answers 404 with this code for an unknown key.
  if (status == 401 || status == 403 || code == "XAdminUserNotFound") {
    return "; check that the aggregator's AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, its profile "
           "or its role are valid and may read, list, write and delete below the prefix";
  }
  if (code == "ExpiredToken") return "; give the aggregator credentials that have not expired";
  return "";
}

// CheckPeerAddress demands a port: one is added for the check if there is none.
std::string CheckS3Endpoint(const std::string& endpoint) {
  std::string_view rest(endpoint);
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (rest.starts_with(scheme)) rest.remove_prefix(scheme.size());
  }
  const std::string_view before_port = rest.starts_with('[') ? "]:" : ":";
  const bool has_port = rest.find(before_port) != std::string_view::npos;
  const std::string address = has_port ? std::string(rest) : std::string(rest) + ":443";
  if (CheckPeerAddress(address).empty()) return "";
  return fmt::format("'{}' is not an endpoint; write HOST, HOST:PORT or http://HOST:PORT",
                     endpoint);
}

absl::StatusOr<std::unique_ptr<S3Client>> S3Client::Make(const S3Service& service,
                                                         const std::string& bucket,
                                                         const Environment& environment) {
  auto client = std::unique_ptr<S3Client>(new S3Client(service, bucket, environment));
  ASSIGN_OR_RETURN(client->credentials_, client->find_credentials_.Find());
  return client;
}

S3Client::S3Client(const S3Service& service, const std::string& bucket,
                   const Environment& environment)
    : region_(RegionOf(service, environment)),
      url_(fmt::format("{}/{}", EndpointOf(service, region_), bucket)),
      bucket_(bucket),
      authorities_(AuthoritiesOf(service, environment)),
      find_credentials_(environment, region_, authorities_) {}

// Makes one attempt, of at most `time`. Any HTTP status is a reply, and not an error here.
absl::StatusOr<S3Reply> S3Client::SendOnce(const S3Request& request,
                                           std::chrono::milliseconds time) {
  HttpRequest http{.method = request.method,
                   .url = url_,
                   .headers = request.headers,
                   .body = request.body,
                   .signing = HttpSigning{.region = region_,
                                          .service = "s3",
                                          .key_id = credentials_.key_id,
                                          .secret = credentials_.secret},
                   .authorities = authorities_,
                   .time = time,
                   .reply_bytes_max = request.reply_bytes_max};
  if (!request.key.empty()) http.url += "/" + UrlEscaped(request.key, /*keep_slashes=*/true);
  char between = '?';
  for (const auto& [name, value] : request.query) {
    http.url += fmt::format("{}{}={}", between, UrlEscaped(name), UrlEscaped(value));
    between = '&';
  }
  // S3 demands the hash of the body in this header, and libcurl uses it for the signature.
  http.headers.push_back("x-amz-content-sha256: " + Sha256HexOf(request.body));
  if (!credentials_.session_token.empty()) {
    http.headers.push_back("x-amz-security-token: " + credentials_.session_token);
  }
  if (!request.body.empty()) http.headers.emplace_back("Content-Type: application/octet-stream");
  auto reply = http_.Send(http);
  if (!reply.ok())
    return WithRemedy(reply.status(), fmt::format("s3://{}/{}", bucket_, request.key));
  return S3Reply{.status = reply->status,
                 .body = std::move(reply->body),
                 .etag = std::string(reply->Header("etag")),
                 .mark = std::string(reply->Header(kMarkName)),
                 .content_bytes = reply->content_bytes};
}

// A role's credentials expire within hours, and an export may take longer. If newer ones cannot be
// obtained, the present ones may still serve this request.
void S3Client::RenewCredentials() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_renewal_ || !ExpireSoon(credentials_, SystemClock().RealtimeNs())) return;
  next_renewal_ = now + kRenewalPause;
  auto newer = find_credentials_.Find();
  if (newer.ok()) credentials_ = *std::move(newer);
}

absl::StatusOr<S3Reply> S3Client::Send(const S3Request& request) {
  using std::chrono::milliseconds;
  const auto end = std::chrono::steady_clock::now() + kSendTime;
  RenewCredentials();
  milliseconds pause = kFirstPause;
  milliseconds left =
      std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
  for (int tries = 1;; ++tries) {
    auto reply = SendOnce(request, left);
    // Retries are safe: requests are idempotent, or their callers (Claim and S3File) recognise
    // their own result after an answer was lost.
    const bool again =
        reply.ok() ? IsWorthAnotherTry(request, *reply) : absl::IsUnavailable(reply.status());
    left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now()) - pause;
    if (!again || tries == kTries || left <= milliseconds::zero()) return reply;
    std::this_thread::sleep_for(pause);
    pause *= 4;
  }
}

absl::StatusOr<S3Reply> S3Client::Do(const S3Request& request) {
  ASSIGN_OR_RETURN(S3Reply reply, Send(request));
  if (reply.status / 100 == 2 && !HasErrorInside(request, reply)) return reply;
  const std::string what = fmt::format("s3://{}/{}: {}", bucket_, request.key, ErrorText(reply));
  switch (reply.status) {
    case 404:
      return NotFound("{}", what);
    // 409 ConditionalRequestConflict and 412 PreconditionFailed answer If-None-Match.
    case 409:
    case 412:
      return AlreadyExists("{}", what);
    case 400:
    case 401:
    case 403:
      return FailedPrecondition("{}", what);
    case 507:
      return ResourceExhausted("{}", what);
    default:
      return Unavailable("{}", what);
  }
}

}  // namespace neurontrace
