// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"

namespace neurontrace {

// Uncompresses a zlib or gzip stream (RFC 1950, 1952) piece by piece with zlib; consecutive members
// of a gzip file are one stream. Its memory is zlib's window of 32 KiB and some state. One thread
// at a time.
class Inflater {
 public:
  // A failure to allocate memory appears at the first Inflate.
  Inflater();
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Begins a new stream.
  void Reset();
  // Consumes bytes from the front of `in`, fills `out` and returns the number of bytes written.
  // Returns 0 with `in` empty if more input is needed or the stream has ended. Fails with DATA_LOSS
  // if the bytes are not such a stream.
  absl::StatusOr<size_t> Inflate(std::string_view& in, char* out, size_t out_bytes);
  // Returns whether a stream has ended and no other has begun.
  bool is_at_end() const { return is_at_end_; }

 private:
  z_stream stream_ = {};
  bool is_at_end_ = false;
};

}  // namespace neurontrace
