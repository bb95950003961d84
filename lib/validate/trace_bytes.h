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
#include "lib/validate/inflater.h"

namespace neurontrace {

// Reads the next bytes of a file, a pipe or a test into a buffer and returns how many; 0 at the
// end. May block. An error ends the reading.
using ReadBytes = std::function<absl::StatusOr<size_t>(char* out, size_t bytes_max)>;

// The bytes of a trace in order, uncompressed if the file is gzipped. Holds as much as Peek asks
// for, plus a piece of the file. Used by PacketStream; one thread at a time.
class TraceBytes {
 public:
  // `read` is called on the thread of Peek, from the first Peek on.
  explicit TraceBytes(ReadBytes read);

  // Returns at least the next `bytes` bytes, fewer only at the end or after an error; valid until
  // the next call. The caller limits `bytes`, which are held in memory.
  std::string_view Peek(size_t bytes);
  // Moves past bytes that Peek has returned; no more than these.
  void Skip(size_t bytes);
  // Returns why there are no more bytes: OK at the end of the file, DATA_LOSS if a gzip file is
  // damaged, or the reader's error.
  const absl::Status& status() const { return status_; }

  uint64_t offset() const { return offset_; }  // of the next byte, uncompressed
  // Returns the bytes read from the file, before uncompressing.
  uint64_t file_bytes() const { return file_bytes_; }
  // Valid once a byte was read.
  bool is_gzip() const { return is_gzip_; }

 private:
  // Makes at least `bytes` bytes available in the buffer, unless the input ends.
  void Fill(size_t bytes);
  // Read the next uncompressed bytes; 0 at the end.
  absl::StatusOr<size_t> ReadMore(char* out, size_t bytes_max);
  absl::StatusOr<size_t> FillCompressed(char* out, size_t bytes_max);
  // Reads the first bytes and decides whether the file is gzipped.
  absl::Status DetectGzip();

  const ReadBytes read_;
  Inflater inflater_;
  // The first bytes were examined.
  bool has_begun_ = false;
  bool is_gzip_ = false;
  // Nothing more can be read: the end, or an error in `status_`.
  bool is_at_end_ = false;
  absl::Status status_;
  uint64_t offset_ = 0;
  uint64_t file_bytes_ = 0;
  // Bytes from `begin_` to `end_` were read and not skipped.
  std::vector<char> buffer_;
  size_t begin_ = 0;  // of the bytes in the buffer that were not skipped
  size_t end_ = 0;
  // A piece of a gzip file, and the rest of it that was not uncompressed.
  std::vector<char> compressed_;
  std::string_view compressed_left_;
};

}  // namespace neurontrace
