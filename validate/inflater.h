// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"

namespace neurontrace {

// A zlib or gzip stream (RFC 1950, 1952), piece by piece; members of a gzip file that follow each
// other are one. One thread at a time.
class Inflater {
 public:
  Inflater();
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Begins a new stream.
  void Reset();
  // Takes from the front of `in` and fills `out`; returns the bytes written there. 0 with `in`
  // empty: more is needed, or the stream has ended. DATA_LOSS where the bytes are no such stream.
  absl::StatusOr<size_t> Inflate(std::string_view& in, char* out, size_t out_bytes);
  // A stream has ended and no other has begun.
  bool is_at_end() const { return is_at_end_; }

 private:
  z_stream stream_ = {};
  bool is_at_end_ = false;
};

}  // namespace neurontrace
