// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/security_watch.h"

#include "lib/wire/pem_files.h"

namespace neurontrace {
namespace {

// A certificate expires without a change of its file.
constexpr uint64_t kCheckAnywayNs = 60'000'000'000;

// Returns the end, or nothing if the file could not be read.
std::optional<int64_t> Known(const absl::StatusOr<int64_t>& end) {
  return end.ok() ? std::optional(*end) : std::nullopt;
}

// Returns the versions of the files that the security has, always in the same order.
std::vector<FileVersion> MarksOf(const ChannelSecurity& security) {
  std::vector<FileVersion> marks;
  for (const std::string* path : {&security.ca, &security.cert, &security.key}) {
    if (!path->empty()) marks.push_back(MarkOf(*path));
  }
  return marks;
}

}  // namespace

SecurityEnds EndsOf(const ChannelSecurity& security) {
  SecurityEnds ends;
  if (!security.cert.empty()) ends.certificate = Known(CertificateEnd(security.cert));
  if (!security.ca.empty()) ends.authority = Known(AuthorityEnd(security.ca));
  ends.open_secrets = DescribeOpenSecrets(security).size();
  return ends;
}

// An unchanged result is not returned again, so that a bad file is reported once.
std::optional<absl::Status> SecurityWatch::Poll() {
  if (!security_.has_tls()) return std::nullopt;
  std::vector<FileVersion> marks = MarksOf(security_);
  const bool are_new = has_checked_ && marks != marks_;
  const uint64_t now_ns = clock_.MonotonicNs();
  const bool is_time = !has_checked_ || now_ns - checked_monotonic_ns_ >= kCheckAnywayNs;
  if (!are_new && !is_time) return std::nullopt;
  has_checked_ = true;
  marks_ = std::move(marks);
  checked_monotonic_ns_ = now_ns;
  absl::Status status = CheckSecurity(security_, address_, side_);
  // A changed file is always reported, also if it is good: an operator who rotates certificates
  // waits for that line.
  if (!are_new && status == status_) return std::nullopt;
  status_ = std::move(status);
  return status_;
}

}  // namespace neurontrace
