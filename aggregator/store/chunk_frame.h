// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/trace/chunk_header.h"

namespace neurontrace {

// What precedes header and columns in the value of family `chunks`, so that a reader needs not
// parse the header. Little endian; docs/formats/store.md has the bytes.
struct ChunkFrame {
  static constexpr uint32_t kVersion = 1;
  static constexpr size_t kBytes = 40;

  uint32_t crc32c = 0;
  uint32_t event_count = 0;
  uint32_t columns_bytes = 0;  // before compression
  uint32_t header_bytes = 0;
  uint64_t first_timestamp_ns = 0;
  uint64_t last_timestamp_ns = 0;
  std::optional<PrecedingGap> gone_before;  // as it came in the envelope

  std::array<char, kBytes> Encode() const;
  // nullopt for another version, too few bytes, or a header longer than what follows.
  static std::optional<ChunkFrame> Decode(std::string_view value);
};

}  // namespace neurontrace
