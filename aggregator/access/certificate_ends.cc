// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/certificate_ends.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "absl/status/statusor.h"
#include "lib/base/sha256.h"
#include "lib/wire/pem_files.h"

namespace neurontrace {

// The key of the cache is a hash, so that a certificate takes the same space whatever its size.
absl::Status CertificateEnds::Check(std::string_view pem) {
  Sha256 sha256;
  sha256.Update(pem);
  const std::string hash = sha256.Finish();
  MutexLock lock(mutex_);
  auto known = ends_.find(hash);
  if (known == ends_.end()) {
    // Parsing takes long; two threads may parse the same certificate.
    lock.Unlock();
    const absl::StatusOr<int64_t> end = EndOfCertificate(pem);
    if (!end.ok()) {
      return absl::UnauthenticatedError("the certificate of this connection cannot be read");
    }
    lock.Lock();
    // Refilling costs one parse for each certificate in use; no order of use has to be kept.
    if (ends_.size() >= known_max_) ends_.clear();
    known = ends_.insert_or_assign(hash, *end).first;
  }
  const int64_t end_s = known->second;
  if (static_cast<int64_t>(clock_.RealtimeNs() / 1'000'000'000) <= end_s) return absl::OkStatus();
  return absl::UnauthenticatedError(
      fmt::format("the certificate of this connection expired at {:%F %R} UTC; connect again "
                  "with a new one",
                  fmt::gmtime(static_cast<std::time_t>(end_s))));
}

size_t CertificateEnds::known() const {
  const MutexLock lock(mutex_);
  return ends_.size();
}

}  // namespace neurontrace
