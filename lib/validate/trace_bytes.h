// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
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

// Reads the next bytes of a file into a buffer and returns how many; 0 at its end. What a file, a
// pipe or a test has.
using ReadBytes = std::function<absl::StatusOr<size_t>(char* out, size_t bytes_max)>;

// The bytes of a trace in order, uncompressed where the file is gzipped. One thread at a time.
class TraceBytes {
 public:
  explicit TraceBytes(ReadBytes read);

  // At least `bytes` of what comes next, fewer only at the end; valid until the next call. The
  // caller limits `bytes`.
  std::string_view Peek(size_t bytes);
  void Skip(size_t bytes);  // of what Peek returned
  // Why there is no more: OK at the end of the file, DATA_LOSS where a gzip file is damaged, and
  // errors of the reader.
  const absl::Status& status() const { return status_; }

  uint64_t offset() const { return offset_; }  // of what comes next, uncompressed
  uint64_t file_bytes() const { return file_bytes_; }
  bool is_gzip() const { return is_gzip_; }

 private:
  void Fill(size_t bytes);
  absl::StatusOr<size_t> ReadMore(char* out, size_t bytes_max);
  absl::StatusOr<size_t> FillCompressed(char* out, size_t bytes_max);
  absl::Status LookAtBeginning();

  const ReadBytes read_;
  Inflater inflater_;
  bool has_begun_ = false;
  bool is_gzip_ = false;
  bool is_at_end_ = false;
  absl::Status status_;
  uint64_t offset_ = 0;
  uint64_t file_bytes_ = 0;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // of what was not skipped, in the buffer
  size_t end_ = 0;
  std::vector<char> compressed_;
  std::string_view compressed_left_;
};

}  // namespace neurontrace
