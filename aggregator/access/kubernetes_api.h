// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace neurontrace {

// The API server of the cluster in which this runs, as pods know it.
struct KubernetesPod {
  std::string url;          // https://HOST:PORT
  std::string credentials;  // the directory with `token` and `ca.crt`

  // From KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, and the directory that Kubernetes
  // mounts, or NEURONTRACE_KUBERNETES_CREDENTIALS where that is set. FAILED_PRECONDITION outside of
  // a pod, or in one without a token.
  static absl::StatusOr<KubernetesPod> Find(
      const std::function<std::string(const char* name)>& environment);
};

// Asks the API server who a token is (TokenReview), over TLS that its certificate authority has to
// vouch for. The aggregator's own token is read for each question, as it is exchanged every hour.
// Any thread; blocks for limits::kTokenReviewMsMax at most.
class KubernetesApi {
 public:
  KubernetesApi(KubernetesPod pod, std::string audience)
      : pod_(std::move(pod)), audience_(std::move(audience)) {}

  // "NAMESPACE/NAME" of a service account; nothing: the token is nobody's. UNAVAILABLE, with what
  // to do, for everything else: none of it says who the token is. No error has a token in it.
  absl::StatusOr<std::optional<std::string>> Review(const std::string& token) const;

 private:
  const KubernetesPod pod_;
  const std::string audience_;
};

}  // namespace neurontrace
