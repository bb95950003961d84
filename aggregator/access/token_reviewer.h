// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace neurontrace {

// Knows to whom a token of Kubernetes belongs; the API server does, through KubernetesApi. Any
// thread.
class TokenReviewer {
 public:
  virtual ~TokenReviewer() = default;
  // Returns "NAMESPACE/NAME" of a service account, or nullopt if the token belongs to nobody. Fails
  // with UNAVAILABLE if that cannot be determined. Blocks for seconds at most.
  virtual absl::StatusOr<std::optional<std::string>> Review(const std::string& token) const = 0;
};

}  // namespace neurontrace
