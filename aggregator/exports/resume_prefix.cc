// SPDX-License-Identifier: Apache-2.0
#include "aggregator/exports/resume_prefix.h"

#include <algorithm>

namespace neurontrace {

bool ResumePrefix::Skip(std::string_view& bytes) {
  if (left_ == 0) return true;
  const std::string_view held = bytes.substr(0, std::min<uint64_t>(left_, bytes.size()));
  hash_.Update(held);
  left_ -= held.size();
  bytes.remove_prefix(held.size());
  // The hash is that of the first `bytes_` bytes, whatever pieces they come in, so only the whole
  // prefix can be compared. Nothing was sent before that, so nothing needs taking back.
  return left_ != 0 || hash_.Finish() == sha256_;
}

}  // namespace neurontrace
