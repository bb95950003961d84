// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/kubernetes_api.h"

#include <chrono>

#include "aggregator/access/token_review.h"
#include "aggregator/http/http_client.h"
#include "lib/base/small_file.h"
#include "lib/base/status.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {
namespace {

// Where the kubelet mounts the token of a pod's service account, and the cluster's authority.
constexpr char kMountedCredentials[] = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr char kReviewPath[] = "/apis/authentication.k8s.io/v1/tokenreviews";

// Returns what an administrator has to do after an HTTP status, to be appended to a message.
std::string DescribeRemedy(int status) {
  switch (status) {
    case 401:
      return "; it does not accept the aggregator's own token";
    case 403:
      return "; bind the aggregator's service account to the ClusterRole system:auth-delegator, "
             "which may create tokenreviews";
    case 429:
      return "; it is overloaded";
    default:
      return "";
  }
}

}  // namespace

// Both files are read once here, so that a pod without them is reported at the start and not by the
// first call.
absl::StatusOr<KubernetesPod> KubernetesPod::Find(
    const std::function<std::string(const char* name)>& environment) {
  const std::string host = environment("KUBERNETES_SERVICE_HOST");
  const std::string port = environment("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return FailedPrecondition(
        "--kubernetes-tokens: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; the "
        "aggregator must run in a pod");
  }
  KubernetesPod pod;
  // An IPv6 address needs brackets in a URL.
  pod.url = host.find(':') == std::string::npos ? fmt::format("https://{}:{}", host, port)
                                                : fmt::format("https://[{}]:{}", host, port);
  pod.credentials = environment("NEURONTRACE_KUBERNETES_CREDENTIALS");
  if (pod.credentials.empty()) pod.credentials = kMountedCredentials;
  const absl::Status token =
      ReadTokenFile(pod.credentials + "/token", limits::kTokenBytesMax).status();
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

// Sends one POST without a proxy, limited in time and size. 200 and 201 are answers.
absl::StatusOr<std::optional<std::string>> KubernetesApi::Review(const std::string& token) const {
  // The token is read for each question because the kubelet replaces the file.
  const auto own = ReadTokenFile(pod_.credentials + "/token", limits::kTokenBytesMax);
  if (!own.ok()) return Unavailable("{}", std::string(own.status().message()));
  const std::string question = TokenReviewRequest(token, audience_);
  const auto reply =
      HttpClient().Send({.method = "POST",
                         .url = pod_.url + kReviewPath,
                         .headers = {"Authorization: Bearer " + *own,
                                     "Content-Type: application/json", "Accept: application/json"},
                         .body = question,
                         .authorities = pod_.credentials + "/ca.crt",
                         .through_proxy = false,
                         .time = std::chrono::milliseconds(limits::kTokenReviewMsMax),
                         .reply_bytes_max = limits::kTokenReviewBytesMax});
  if (!reply.ok()) {
    return Unavailable("cannot verify the token: the API server {}",
                       std::string(reply.status().message()));
  }
  // Anything else is no judgement of the token.
  if (reply->status != 200 && reply->status != 201) {
    return Unavailable("cannot verify the token: the API server {} answers HTTP {}{}", pod_.url,
                       reply->status, DescribeRemedy(reply->status));
  }
  // Fails for a body that is no TokenReview.
  return ReadTokenReview(reply->body, audience_);
}

}  // namespace neurontrace
