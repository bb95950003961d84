// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/certificate_ends.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "absl/status/statusor.h"
#include "base/sha256.h"
#include "wire/pem_files.h"

namespace neurontrace {

absl::Status CertificateEnds::Check(std::string_view pem) {
  Sha256 sha256;
  sha256.Update(pem);
  const std::string hash = sha256.Finish();
  std::unique_lock lock(mutex_);
  auto known = ends_.find(hash);
  if (known == ends_.end()) {
    lock.unlock();
    const absl::StatusOr<int64_t> end = EndOfCertificate(pem);
    if (!end.ok()) {
      return absl::UnauthenticatedError("the certificate of this connection cannot be read");
    }
    lock.lock();
    if (ends_.size() >= known_max_) ends_.clear();
    known = ends_.insert_or_assign(hash, *end).first;
  }
  const int64_t end_s = known->second;
  if (static_cast<int64_t>(clock_.RealtimeNs() / 1'000'000'000) <= end_s) return absl::OkStatus();
  return absl::UnauthenticatedError(
      fmt::format("the certificate of this connection was valid until {:%F %R} UTC: connect again "
                  "with a new one",
                  fmt::gmtime(static_cast<std::time_t>(end_s))));
}

size_t CertificateEnds::known() const {
  const std::lock_guard lock(mutex_);
  return ends_.size();
}

}  // namespace neurontrace
