// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {

// Checks whether the certificate of a connection has expired: gRPC only checks when the connection
// is made. Caches the expiry of limits::kCertificateEndsKnownMax certificates, as parsing one takes
// longer than most calls. Any thread. Owned by Authenticator.
class CertificateEnds {
 public:
  // `clock` must outlive this.
  explicit CertificateEnds(const Clock& clock, size_t known_max = limits::kCertificateEndsKnownMax)
      : clock_(clock), known_max_(known_max) {}

  // Fails with UNAUTHENTICATED if the certificate has expired, stating when, or cannot be read.
  // `pem` is the certificate's text as gRPC gives it.
  absl::Status Check(std::string_view pem);

  // Returns how many certificates are cached.
  size_t known() const;

 private:
  // The clock by which certificates expire.
  const Clock& clock_;
  const size_t known_max_;
  mutable Mutex mutex_;
  // Seconds since 1970, by the certificate's SHA-256. All are forgotten at the limit.
  std::unordered_map<std::string, int64_t> ends_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
