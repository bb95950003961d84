// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "base/clock.h"
#include "trace/access_limits.h"

namespace neurontrace {

// Whether certificates of connections have ended: gRPC looks at them when a connection is made, and
// never again. Remembers the ends of limits::kCertificateEndsKnownMax, as reading one takes longer
// than most calls. Any thread.
class CertificateEnds {
 public:
  // `clock` outlives it.
  explicit CertificateEnds(const Clock& clock, size_t known_max = limits::kCertificateEndsKnownMax)
      : clock_(clock), known_max_(known_max) {}

  // UNAUTHENTICATED where the certificate is over, with its end, or cannot be read.
  absl::Status Check(std::string_view pem);

  size_t known() const;

 private:
  const Clock& clock_;
  const size_t known_max_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, int64_t> ends_;  // by SHA-256; guarded by mutex_
};

}  // namespace neurontrace
