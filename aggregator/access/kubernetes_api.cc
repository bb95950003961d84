// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/kubernetes_api.h"

#include <curl/curl.h>

#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "aggregator/access/token_review.h"
#include "base/small_file.h"
#include "base/status.h"
#include "trace/access_limits.h"

namespace neurontrace {
namespace {

constexpr char kMountedCredentials[] = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr char kReviewPath[] = "/apis/authentication.k8s.io/v1/tokenreviews";

struct CurlEnd {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlHandle = std::unique_ptr<CURL, CurlEnd>;
using CurlList = std::unique_ptr<curl_slist, CurlEnd>;

absl::StatusOr<CurlHandle> NewHandle() {
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  CurlHandle curl(initialized == CURLE_OK ? curl_easy_init() : nullptr);
  if (curl == nullptr) return Internal("libcurl cannot be used");
  return curl;
}

struct ReviewBody {
  std::string text;
  bool is_too_large = false;
};

size_t TakeReviewBody(char* bytes, size_t one, size_t size, void* to) {
  auto& body = *static_cast<ReviewBody*>(to);
  if (body.text.size() + one * size > limits::kTokenReviewBytesMax) {
    body.is_too_large = true;
    return 0;
  }
  body.text.append(bytes, one * size);
  return one * size;
}

bool AddHeader(const std::string& line, CurlList& headers) {
  curl_slist* const longer = curl_slist_append(headers.get(), line.c_str());
  if (longer == nullptr) return false;
  headers.release();
  headers.reset(longer);
  return true;
}

std::string WhatToDo(long status) {
  switch (status) {
    case 401:
      return "; it does not know the aggregator's own token";
    case 403:
      return "; give the aggregator's service account the ClusterRole system:auth-delegator, which "
             "may create tokenreviews";
    case 429:
      return "; it has too much to do";
    default:
      return "";
  }
}

// Without what stands around it; nothing that would end a header.
absl::StatusOr<std::string> ReadOwnToken(const std::string& path) {
  ASSIGN_OR_RETURN(std::string token, ReadSmallFile(path, limits::kTokenBytesMax));
  token.erase(token.find_last_not_of(" \t\r\n") + 1);
  if (token.empty() || token.find_first_of("\r\n") != std::string::npos) {
    return FailedPrecondition("{} holds no token", path);
  }
  return token;
}

}  // namespace

absl::StatusOr<KubernetesPod> KubernetesPod::Find(
    const std::function<std::string(const char* name)>& environment) {
  const std::string host = environment("KUBERNETES_SERVICE_HOST");
  const std::string port = environment("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return FailedPrecondition(
        "--kubernetes-tokens: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: is "
        "this no pod of a cluster?");
  }
  KubernetesPod pod;
  pod.url = host.find(':') == std::string::npos ? fmt::format("https://{}:{}", host, port)
                                                : fmt::format("https://[{}]:{}", host, port);
  pod.credentials = environment("NEURONTRACE_KUBERNETES_CREDENTIALS");
  if (pod.credentials.empty()) pod.credentials = kMountedCredentials;
  const absl::Status token = ReadOwnToken(pod.credentials + "/token").status();
  const absl::Status authority =
      ReadSmallFile(pod.credentials + "/ca.crt", limits::kPemBytesMax).status();
  for (const absl::Status& status : {token, authority}) {
    if (!status.ok()) {
      return FailedPrecondition(
          "--kubernetes-tokens: {}; the pod needs automountServiceAccountToken",
          std::string(status.message()));
    }
  }
  return pod;
}

absl::StatusOr<std::optional<std::string>> KubernetesApi::Review(const std::string& token) const {
  const auto own = ReadOwnToken(pod_.credentials + "/token");
  if (!own.ok()) return Unavailable("{}", std::string(own.status().message()));
  ASSIGN_OR_RETURN(const CurlHandle handle, NewHandle());
  CURL* const curl = handle.get();
  CurlList headers;
  if (!AddHeader("Authorization: Bearer " + *own, headers) ||
      !AddHeader("Content-Type: application/json", headers) ||
      !AddHeader("Accept: application/json", headers)) {
    return Internal("libcurl cannot be used");
  }
  const std::string url = pod_.url + kReviewPath;
  const std::string authority = pod_.credentials + "/ca.crt";
  const std::string question = TokenReviewRequest(token, audience_);
  ReviewBody body;
  char error[CURL_ERROR_SIZE] = {};
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
  curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(limits::kTokenReviewMsMax));
  curl_easy_setopt(curl, CURLOPT_CAINFO, authority.c_str());
  curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);  // that authority alone
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(question.size()));
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, question.c_str());
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, static_cast<char*>(error));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, TakeReviewBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
  const CURLcode code = curl_easy_perform(curl);
  if (body.is_too_large) return Unavailable("the API server's answer is too large for one");
  if (code != CURLE_OK) {
    return Unavailable(
        "who the token is cannot be found out: the API server {}: {}", pod_.url,
        error[0] != '\0' ? static_cast<const char*>(error) : curl_easy_strerror(code));
  }
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200 && status != 201) {
    return Unavailable("who the token is cannot be found out: the API server {} says HTTP {}{}",
                       pod_.url, status, WhatToDo(status));
  }
  return ReadTokenReview(body.text, audience_);
}

}  // namespace neurontrace
