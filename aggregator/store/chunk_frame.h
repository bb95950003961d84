// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/trace/chunk_header.h"

namespace neurontrace {

// The 40 bytes before header and columns in a value of family `chunks`. It repeats what readers
// need of the header, so that they do not have to parse it. Little endian; docs/formats/store.md
// lists the bytes. A plain value.
struct ChunkFrame {
  static constexpr uint32_t kVersion = 1;
  static constexpr size_t kBytes = 40;

  // Of header, then columns, as in the envelope: with these three the envelope can be restored
  // exactly.
  uint32_t crc32c = 0;
  uint32_t event_count = 0;
  uint32_t columns_bytes = 0;       // before compression
  uint32_t header_bytes = 0;        // the columns fill the rest of the value
  uint64_t first_timestamp_ns = 0;  // raw; 0 without events
  uint64_t last_timestamp_ns = 0;
  std::optional<PrecedingGap> gone_before;  // why the chunks before this one are missing

  std::array<char, kBytes> Encode() const;
  // Returns nullopt for another version, fewer than kBytes bytes, an unknown place or reason, or a
  // header longer than the rest of the value. Does not check the checksum.
  static std::optional<ChunkFrame> Decode(std::string_view value);
};

}  // namespace neurontrace
