// SPDX-License-Identifier: Apache-2.0
#include "validate/zstd_inflater.h"

#include <zstd_errors.h>

#include "base/status.h"
#include "validate/limits.h"

namespace neurontrace {

void ZstdInflater::Reset() {
  if (context_ == nullptr) {
    context_.reset(ZSTD_createDCtx());
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, validate_limits::kZstdWindowLogMax);
  }
  ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only);
  failure_ = absl::OkStatus();
  is_at_end_ = false;
}

absl::StatusOr<size_t> ZstdInflater::Inflate(std::string_view& in, char* out, size_t out_bytes) {
  RETURN_IF_ERROR(failure_);
  size_t written = 0;
  while (written < out_bytes && !is_at_end_) {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out + written, out_bytes - written, 0};
    const size_t left = ZSTD_decompressStream(context_.get(), &to, &from);
    in.remove_prefix(from.pos);
    written += to.pos;
    if (ZSTD_isError(left) != 0) {
      failure_ = ZSTD_getErrorCode(left) == ZSTD_error_frameParameter_windowTooLarge
                     ? absl::ResourceExhaustedError(ZSTD_getErrorName(left))
                     : absl::DataLossError(ZSTD_getErrorName(left));
      if (written > 0) break;  // said at the next call
      return failure_;
    }
    is_at_end_ = left == 0;
    if (from.pos == 0 && to.pos == 0) break;  // needs more input
  }
  return written;
}

}  // namespace neurontrace
