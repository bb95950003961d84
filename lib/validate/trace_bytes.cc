// SPDX-License-Identifier: Apache-2.0
#include "lib/validate/trace_bytes.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Detects the header of zlib or gzip, as Perfetto does (inflateInit2 in zlib.h); 15 is the largest
// window.
constexpr int kAnyHeader = 32 + 15;
// zlib counts bytes in 32 bits.
constexpr size_t kBytesAtOnce = std::numeric_limits<uInt>::max();

// Bytes that are read from the file at once; the magic number of gzip (RFC 1952).
constexpr size_t kReadBytes = 256u << 10;
constexpr std::string_view kGzip = "\x1f\x8b";

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

TraceBytes::TraceBytes(ReadBytes read) : read_(std::move(read)) {}

absl::Status TraceBytes::DetectGzip() {
  has_begun_ = true;
  compressed_.resize(kReadBytes);
  size_t bytes = 0;
  // A reader of a pipe may return a single byte.
  while (bytes < kGzip.size()) {
    ASSIGN_OR_RETURN(const size_t count, read_(compressed_.data() + bytes, kReadBytes - bytes));
    if (count == 0) break;
    bytes += count;
  }
  file_bytes_ = bytes;
  compressed_left_ = {compressed_.data(), bytes};
  is_gzip_ = compressed_left_.starts_with(kGzip);
  return absl::OkStatus();
}

absl::StatusOr<size_t> TraceBytes::FillCompressed(char* out, size_t bytes_max) {
  while (true) {
    const auto count = inflater_.Inflate(compressed_left_, out, bytes_max);
    if (!count.ok()) {
      return DataLoss("The gzip file is damaged: {}", std::string(count.status().message()));
    }
    if (*count > 0) return *count;
    ASSIGN_OR_RETURN(const size_t more, read_(compressed_.data(), compressed_.size()));
    if (more == 0 && !inflater_.is_at_end()) return DataLoss("The gzip file is truncated");
    if (more == 0) return size_t{0};
    file_bytes_ += more;
    compressed_left_ = {compressed_.data(), more};
  }
}

absl::StatusOr<size_t> TraceBytes::ReadMore(char* out, size_t bytes_max) {
  if (!has_begun_) RETURN_IF_ERROR(DetectGzip());
  if (is_gzip_) return FillCompressed(out, bytes_max);
  // The bytes that were read to recognise gzip are the first of a plain file.
  if (!compressed_left_.empty()) {
    const size_t count = std::min(bytes_max, compressed_left_.size());
    std::memcpy(out, compressed_left_.data(), count);
    compressed_left_.remove_prefix(count);
    return count;
  }
  ASSIGN_OR_RETURN(const size_t count, read_(out, bytes_max));
  file_bytes_ += count;
  return count;
}

void TraceBytes::Fill(size_t bytes) {
  // There is too little room behind the bytes: they move to the front.
  if (buffer_.size() - begin_ < bytes) {
    // An empty buffer has no address to move from.
    if (end_ > begin_) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    // The caller has limited `bytes`.
    if (buffer_.size() < bytes) buffer_.resize(std::max(2 * kReadBytes, bytes + kReadBytes));
  }
  while (end_ - begin_ < bytes && !is_at_end_) {
    const auto count = ReadMore(buffer_.data() + end_, buffer_.size() - end_);
    // What was read before an error is still returned.
    if (!count.ok()) status_ = count.status();
    is_at_end_ = !count.ok() || *count == 0;
    if (count.ok()) end_ += *count;
  }
}

std::string_view TraceBytes::Peek(size_t bytes) {
  if (end_ - begin_ < bytes && !is_at_end_) Fill(bytes);
  return {buffer_.data() + begin_, end_ - begin_};
}

void TraceBytes::Skip(size_t bytes) {
  begin_ += bytes;
  offset_ += bytes;
}

}  // namespace neurontrace
