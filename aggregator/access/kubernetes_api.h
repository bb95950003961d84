// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "aggregator/access/token_reviewer.h"

namespace neurontrace {

// How to reach the API server of the cluster that this pod runs in. Found once, at the start of the
// aggregator.
struct KubernetesPod {
  std::string url;          // https://HOST:PORT
  std::string credentials;  // directory with `token` and `ca.crt`

  // Reads KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, and uses the directory that
  // Kubernetes mounts or NEURONTRACE_KUBERNETES_CREDENTIALS. Fails with FAILED_PRECONDITION outside
  // of a pod or without a token. `environment` returns the value of a variable, empty if it is not
  // set.
  static absl::StatusOr<KubernetesPod> Find(
      const std::function<std::string(const char* name)>& environment);
};

// Asks the API server to whom a token belongs (TokenReview, authentication.k8s.io/v1). The server's
// TLS certificate must be signed by the cluster's authority. The aggregator's own token is read for
// each request, because Kubernetes replaces it every hour. Any thread; blocks for at most
// limits::kTokenReviewMsMax. `audience` is the one that a token must be for, so that tokens for
// other services are not accepted.
class KubernetesApi final : public TokenReviewer {
 public:
  KubernetesApi(KubernetesPod pod, std::string audience)
      : pod_(std::move(pod)), audience_(std::move(audience)) {}

  // TokenReviewer. Fails with UNAVAILABLE and advice for everything that does not say whose the
  // token is. No error contains a token. Sends the token over TLS to the API server only.
  absl::StatusOr<std::optional<std::string>> Review(const std::string& token) const override;

 private:
  const KubernetesPod pod_;
  const std::string audience_;
};

}  // namespace neurontrace
