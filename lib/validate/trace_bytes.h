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

// Uncompresses a zlib or gzip stream (RFC 1950, 1952) piece by piece; consecutive members of a gzip
// file are one stream. One thread at a time.
class Inflater {
 public:
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

// Reads the next bytes of a file, a pipe or a test into a buffer and returns how many; 0 at the
// end.
using ReadBytes = std::function<absl::StatusOr<size_t>(char* out, size_t bytes_max)>;

// The bytes of a trace in order, uncompressed if the file is gzipped. Holds as much as Peek asks
// for. One thread at a time.
class TraceBytes {
 public:
  explicit TraceBytes(ReadBytes read);

  // Returns at least the next `bytes` bytes, fewer only at the end; valid until the next call. The
  // caller limits `bytes`.
  std::string_view Peek(size_t bytes);
  // Moves past bytes that Peek has returned.
  void Skip(size_t bytes);
  // Returns why there are no more bytes: OK at the end of the file, DATA_LOSS if a gzip file is
  // damaged, or the reader's error.
  const absl::Status& status() const { return status_; }

  uint64_t offset() const { return offset_; }  // of the next byte, uncompressed
  // Returns the bytes read from the file, before uncompressing.
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
  size_t begin_ = 0;  // of the bytes in the buffer that were not skipped
  size_t end_ = 0;
  std::vector<char> compressed_;
  std::string_view compressed_left_;
};

}  // namespace neurontrace
