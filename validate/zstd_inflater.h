// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zstd.h>

#include <cstddef>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace neurontrace {

// A zstd frame (RFC 8878), piece by piece. Holds no memory until it is first used. One thread at a
// time.
class ZstdInflater {
 public:
  // Begins a new frame.
  void Reset();
  // Takes from the front of `in` and fills `out`; returns the bytes written there. 0: more is
  // needed, or the frame has ended, behind which nothing is taken. DATA_LOSS where the bytes are no
  // frame, RESOURCE_EXHAUSTED where it needs more memory than validate/limits.h allows.
  absl::StatusOr<size_t> Inflate(std::string_view& in, char* out, size_t out_bytes);
  bool is_at_end() const { return is_at_end_; }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  std::unique_ptr<ZSTD_DCtx, Free> context_;
  absl::Status failure_;  // of the frame: what was wrong stays wrong
  bool is_at_end_ = false;
};

}  // namespace neurontrace
