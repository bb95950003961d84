// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/s3_client.h"

#include <curl/curl.h>

#include <chrono>
#include <optional>
#include <thread>

#include "aggregator/deliver/s3_xml.h"
#include "aggregator/deliver/volume.h"
#include "base/clean_text.h"
#include "base/sha256.h"
#include "base/status.h"

namespace neurontrace {
namespace {

constexpr long kConnectSeconds = 10;
constexpr long kStallSeconds = 20;
constexpr int kTries = 3;
// Of all tries of a request: what is slower than this, and never stalls, would outlive its claim.
constexpr std::chrono::milliseconds kSendTime(kVolumeOperationNs / 1'000'000);
constexpr std::chrono::milliseconds kFirstPause(200);
constexpr size_t kMessageBytes = 300;
constexpr std::string_view kMarkName = "x-amz-meta-neurontrace-upload";

// RFC 3986: all but what needs no escape.
std::string Escaped(std::string_view text, bool keep_slashes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') ||
                          std::string_view("-._~").find(c) != std::string_view::npos;
    if (is_plain || (c == '/' && keep_slashes)) {
      escaped += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      escaped += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return escaped;
}

// Filled by libcurl as it comes.
struct Receiver {
  std::string body;
  size_t bytes_max = 0;
  bool is_too_large = false;
  std::string etag;
  std::string mark;
};

size_t TakeBody(char* bytes, size_t one, size_t size, void* to) {
  auto& receiver = *static_cast<Receiver*>(to);
  if (receiver.body.size() + one * size > receiver.bytes_max) {
    receiver.is_too_large = true;
    return 0;
  }
  receiver.body.append(bytes, one * size);
  return one * size;
}

// What follows "name:" in a header's line, if it is that one.
void TakeValue(std::string_view line, std::string_view name, std::string& value) {
  if (line.size() <= name.size() || strncasecmp(line.data(), name.data(), name.size()) != 0) return;
  line.remove_prefix(name.size());
  if (line.front() != ':') return;
  line.remove_prefix(1);
  const size_t begin = line.find_first_not_of(" \t\r\n");
  const size_t end = line.find_last_not_of(" \t\r\n");
  if (begin != std::string_view::npos) value = std::string(line.substr(begin, end - begin + 1));
}

size_t TakeHeader(char* bytes, size_t one, size_t size, void* to) {
  auto& receiver = *static_cast<Receiver*>(to);
  const std::string_view line(bytes, one * size);
  TakeValue(line, "etag", receiver.etag);
  TakeValue(line, kMarkName, receiver.mark);
  return one * size;
}

void SetMethod(CURL* curl, const S3Request& request) {
  if (request.method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  } else if (request.method == "PUT" || request.method == "POST") {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  } else {
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

struct HeaderList {
  ~HeaderList() { curl_slist_free_all(first); }
  void Add(const std::string& line) { first = curl_slist_append(first, line.c_str()); }
  curl_slist* first = nullptr;
};

std::string RegionOf(const S3Service& service, const Environment& environment) {
  if (!service.region.empty()) return service.region;
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (std::string region = environment(name); !region.empty()) return region;
  }
  return "us-east-1";
}

// In the words of the service.
std::string WhatItSays(const S3Reply& reply) {
  const std::string code = CleanText(XmlText(reply.body, "Code"), kMessageBytes);
  const std::string message = CleanText(XmlText(reply.body, "Message"), kMessageBytes);
  return fmt::format("HTTP {}{}{}{}{}{}", reply.status, code.empty() ? "" : ", ", code,
                     message.empty() ? "" : ": ", message, S3Remedy(reply.status, code));
}

// CompleteMultipartUpload can say 200 and then that it failed.
bool HasErrorInside(const S3Request& request, const S3Reply& reply) {
  return request.method == "POST" && reply.status / 100 == 2 &&
         !XmlElements(reply.body, "Error").empty();
}

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
    return "; make the bucket, or name another one with --export-root";
  }
  const bool is_of_region = code == "AuthorizationHeaderMalformed" || code == "PermanentRedirect" ||
                            code == "IllegalLocationConstraint" || status == 301;
  if (is_of_region) return "; give the bucket's region with --s3-region";
  // VersityGW says 404 to a key that nobody has.
  if (status == 401 || status == 403 || code == "XAdminUserNotFound") {
    return "; see that the aggregator's AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or its "
           "profile, are right and may read, list, write and delete below the prefix";
  }
  return "";
}

struct S3Client::Handle {
  Handle() : curl(curl_easy_init()) {}
  ~Handle() { curl_easy_cleanup(curl); }
  CURL* const curl;
};

std::string CheckS3Endpoint(const std::string& endpoint) {
  std::string_view rest(endpoint);
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (rest.starts_with(scheme)) rest.remove_prefix(scheme.size());
  }
  const bool is_host = !rest.empty() && rest.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789.-:[]") == std::string_view::npos;
  if (is_host) return "";
  return fmt::format("'{}' is no endpoint: write HOST, HOST:PORT or http://HOST:PORT", endpoint);
}

absl::StatusOr<std::unique_ptr<S3Client>> S3Client::Make(const S3Service& service,
                                                         const std::string& bucket,
                                                         const Environment& environment) {
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialized != CURLE_OK) return Internal("libcurl cannot be used");
  ASSIGN_OR_RETURN(S3Credentials credentials, FindS3Credentials(environment));
  std::string region = RegionOf(service, environment);
  std::string endpoint = service.endpoint;
  if (endpoint.empty()) endpoint = fmt::format("https://s3.{}.amazonaws.com", region);
  if (endpoint.find("://") == std::string::npos) endpoint.insert(0, "https://");
  return std::unique_ptr<S3Client>(new S3Client(fmt::format("{}/{}", endpoint, bucket),
                                                std::move(region), bucket, std::move(credentials)));
}

S3Client::S3Client(std::string url, std::string region, std::string bucket,
                   S3Credentials credentials)
    : url_(std::move(url)),
      region_(std::move(region)),
      bucket_(std::move(bucket)),
      credentials_(std::move(credentials)),
      handle_(std::make_unique<Handle>()) {}

S3Client::~S3Client() = default;

absl::StatusOr<S3Reply> S3Client::SendOnce(const S3Request& request,
                                           std::chrono::milliseconds time) {
  CURL* const curl = handle_->curl;
  if (curl == nullptr) return Internal("libcurl cannot be used");
  curl_easy_reset(curl);  // keeps the connection
  std::string url = url_;
  if (!request.key.empty()) url += "/" + Escaped(request.key, true);
  char between = '?';
  for (const auto& [name, value] : request.query) {
    url += fmt::format("{}{}={}", between, Escaped(name, false), Escaped(value, false));
    between = '&';
  }
  HeaderList headers;
  headers.Add("x-amz-content-sha256: " + Sha256HexOf(request.body));
  if (!credentials_.session_token.empty()) {
    headers.Add("x-amz-security-token: " + credentials_.session_token);
  }
  if (!request.body.empty()) headers.Add("Content-Type: application/octet-stream");
  for (const std::string& header : request.headers) headers.Add(header);
  Receiver receiver{.bytes_max = request.reply_bytes_max};
  const std::string signing = "aws:amz:" + region_ + ":s3";
  char error[CURL_ERROR_SIZE] = {};
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,http");
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(time.count()));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
  curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, signing.c_str());
  curl_easy_setopt(curl, CURLOPT_USERNAME, credentials_.key_id.c_str());
  curl_easy_setopt(curl, CURLOPT_PASSWORD, credentials_.secret.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.first);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, static_cast<char*>(error));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, TakeBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &receiver);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, TakeHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &receiver);
  SetMethod(curl, request);
  const CURLcode code = curl_easy_perform(curl);
  if (receiver.is_too_large) {
    return MakeStatus(absl::StatusCode::kOutOfRange, "s3://{}/{} is larger than {} bytes", bucket_,
                      request.key, request.reply_bytes_max);
  }
  if (code != CURLE_OK) {
    return Unavailable(
        "{}: {}", url_,
        error[0] != '\0' ? static_cast<const char*>(error) : curl_easy_strerror(code));
  }
  S3Reply reply;
  long status = 0;
  curl_off_t length = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  reply.status = static_cast<int>(status);
  reply.content_bytes = length > 0 ? static_cast<uint64_t>(length) : 0;
  reply.body = std::move(receiver.body);
  reply.etag = std::move(receiver.etag);
  reply.mark = std::move(receiver.mark);
  return reply;
}

absl::StatusOr<S3Reply> S3Client::Send(const S3Request& request) {
  using std::chrono::milliseconds;
  milliseconds pause = kFirstPause;
  const auto end = std::chrono::steady_clock::now() + kSendTime;
  milliseconds left = kSendTime;
  for (int tries = 1;; ++tries) {
    auto reply = SendOnce(request, left);
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
  const std::string what = fmt::format("s3://{}/{}: {}", bucket_, request.key, WhatItSays(reply));
  switch (reply.status) {
    case 404:
      return NotFound("{}", what);
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
