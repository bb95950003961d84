// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace neurontrace {

// Puts packets of a trace into packets of compressed packets, which a viewer unpacks one by one, so
// that a file that ends early is readable up to its end. Used by one thread at a time.
class PacketCompressor {
 public:
  // Bytes of packets that are compressed together. Perfetto advises at most 512 KiB of compressed
  // bytes in a packet; random bytes grow by less than a thousandth.
  static constexpr size_t kBlockBytes = 384u << 10;

  // Compresses `packets`, which must be whole ones, each with its tag and length. The result is
  // valid until the next call.
  std::string_view Compress(std::string_view packets);

 private:
  void AddBlock(std::string_view packets);

  std::string block_;
  std::string out_;
};

}  // namespace neurontrace
