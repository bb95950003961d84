// SPDX-License-Identifier: Apache-2.0
#include "wire/certificate_watch.h"

#include "wire/pem_files.h"

namespace neurontrace {

std::optional<int64_t> CertificateWatch::Look() {
  if (path_.empty()) return std::nullopt;
  const FileMark mark = MarkOf(path_);
  if (end_ && mark == mark_) return end_;
  mark_ = mark;
  const auto end = CertificateEnd(path_);
  end_ = end.ok() ? std::optional(*end) : std::nullopt;
  return end_;
}

}  // namespace neurontrace
