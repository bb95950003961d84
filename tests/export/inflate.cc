// SPDX-License-Identifier: Apache-2.0
#include "tests/export/inflate.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace neurontrace {
namespace {

constexpr int kWindowBits = 15;
constexpr int kGzipOnly = 16;

}  // namespace

std::string Inflate(std::string_view packed, Wrapping wrapping) {
  z_stream stream{};
  const int bits = kWindowBits + (wrapping == Wrapping::kGzip ? kGzipOnly : 0);
  EXPECT_EQ(inflateInit2(&stream, bits), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  int result = Z_OK;
  std::string piece(64u << 10, '\0');
  while (result == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    result = inflate(&stream, Z_NO_FLUSH);
    text.append(piece, 0, piece.size() - stream.avail_out);
  }
  EXPECT_EQ(result, Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0u) << "bytes after the end";
  inflateEnd(&stream);
  return result == Z_STREAM_END ? text : std::string();
}

}  // namespace neurontrace
