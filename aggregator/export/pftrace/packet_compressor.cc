// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/packet_compressor.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <protozero/pbf_writer.hpp>

#include "aggregator/export/pftrace/perfetto_fields.h"

namespace neurontrace {
namespace {

// zlib's default.
constexpr int kLevel = 6;

// Returns the size of the first packet with its tag and length. The packets are our own, so that
// malformed ones need no error.
size_t PacketBytes(std::string_view packets) {
  size_t at = 1;  // the tag
  uint64_t length = 0;
  for (int shift = 0; at < packets.size(); shift += 7) {
    const auto byte = static_cast<uint8_t>(packets[at++]);
    length |= uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80u) == 0) break;
  }
  return std::min<size_t>(at + length, packets.size());
}

}  // namespace

void PacketCompressor::AddBlock(std::string_view packets) {
  uLongf bytes = compressBound(packets.size());
  block_.resize(bytes);
  // With this much room zlib fails only if it gets no memory: then the packets are written
  // uncompressed.
  if (compress2(reinterpret_cast<Bytef*>(block_.data()), &bytes,
                reinterpret_cast<const Bytef*>(packets.data()), packets.size(), kLevel) != Z_OK) {
    out_ += packets;
    return;
  }
  block_.resize(bytes);
  std::string packet;
  protozero::pbf_writer(packet).add_bytes(perfetto::packet::kCompressed, block_);
  protozero::pbf_writer(out_).add_message(perfetto::trace::kPacket, packet);
}

// Fills each block with as many whole packets as fit, because a viewer unpacks blocks one by one.
std::string_view PacketCompressor::Compress(std::string_view packets) {
  out_.clear();
  while (!packets.empty()) {
    size_t bytes = PacketBytes(packets);
    if (bytes > kBlockBytes) {  // a packet so large is by itself, as it is
      out_ += packets.substr(0, bytes);
      packets.remove_prefix(bytes);
      continue;
    }
    while (bytes < packets.size()) {
      const size_t next = PacketBytes(packets.substr(bytes));
      if (bytes + next > kBlockBytes) break;
      bytes += next;
    }
    AddBlock(packets.substr(0, bytes));
    packets.remove_prefix(bytes);
  }
  return out_;
}

}  // namespace neurontrace
