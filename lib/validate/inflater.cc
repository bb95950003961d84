// SPDX-License-Identifier: Apache-2.0
#include "lib/validate/inflater.h"

#include <algorithm>
#include <limits>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Detects the header of zlib or gzip, as Perfetto does (inflateInit2 in zlib.h); 15 is the largest
// window.
constexpr int kAnyHeader = 32 + 15;
// zlib counts bytes in 32 bits.
constexpr size_t kBytesAtOnce = std::numeric_limits<uInt>::max();

}  // namespace

// zlib fails here only without memory; Inflate then reports that there is no stream.
Inflater::Inflater() { inflateInit2(&stream_, kAnyHeader); }

Inflater::~Inflater() { inflateEnd(&stream_); }

void Inflater::Reset() {
  inflateReset2(&stream_, kAnyHeader);
  is_at_end_ = false;
}

absl::StatusOr<size_t> Inflater::Inflate(std::string_view& in, char* out, size_t out_bytes) {
  size_t written = 0;
  while (written < out_bytes) {
    if (is_at_end_ && in.empty()) break;
    // Another member of a gzip file follows the one that has ended.
    if (is_at_end_) Reset();
    const auto in_bytes = static_cast<uInt>(std::min(in.size(), kBytesAtOnce));
    const auto room = static_cast<uInt>(std::min(out_bytes - written, kBytesAtOnce));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = in_bytes;
    stream_.next_out = reinterpret_cast<Bytef*>(out + written);
    stream_.avail_out = room;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    in.remove_prefix(in_bytes - stream_.avail_in);
    written += room - stream_.avail_out;
    is_at_end_ = result == Z_STREAM_END;
    // More input is needed.
    if (result == Z_BUF_ERROR) break;
    if (result != Z_OK && result != Z_STREAM_END) {
      // The bytes before the damage are returned first; zlib reports the error again at the next
      // call.
      if (written > 0) break;
      return DataLoss("{}", stream_.msg == nullptr ? "not a zlib or gzip stream" : stream_.msg);
    }
  }
  return written;
}

}  // namespace neurontrace
