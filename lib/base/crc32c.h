// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), as iSCSI (RFC 3720), ext4 and LevelDB compute it: reflected, with initial
// and final inversion. Uses SSE4.2 where the processor has it, otherwise a table. Header only and
// free of dependencies, because the tap, which may use nothing but the C library, includes it too.
// Any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace neurontrace {

namespace crc32c_internal {

// For each byte, the checksum's state after it.
struct Table {
  uint32_t entries[256];
};

// 0x82f63b78 is the Castagnoli polynomial 0x1EDC6F41 with its bits reversed, as the algorithm is
// reflected.
constexpr Table MakeTable() {
  Table table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
    table.entries[i] = crc;
  }
  return table;
}

inline constexpr Table kTable = MakeTable();

// Extend a state, which is the checksum before its final inversion, by `size` bytes.
inline uint32_t ExtendByTable(uint32_t state, const unsigned char* data, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    state = (state >> 8) ^ kTable.entries[(state ^ data[i]) & 0xff];
  }
  return state;
}

#if defined(__x86_64__)
// The attribute lets the compiler use the instruction in this function alone; the rest of the
// program must run on processors without it. memcpy, as `data` is not aligned.
__attribute__((target("sse4.2"))) inline uint32_t ExtendBySse42(uint32_t state,
                                                                const unsigned char* data,
                                                                size_t size) {
  uint64_t wide = state;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    memcpy(&word, data, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  uint32_t narrow = static_cast<uint32_t>(wide);
  for (; size > 0; ++data, --size) narrow = __builtin_ia32_crc32qi(narrow, *data);
  return narrow;
}
#endif

// Chooses at each call, which is cheap: the feature bits were read when the program started.
inline uint32_t Extend(uint32_t state, const unsigned char* data, size_t size) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ExtendBySse42(state, data, size);
#endif
  return ExtendByTable(state, data, size);
}

}  // namespace crc32c_internal

// Returns the checksum of a text with checksum `crc` followed by `size` bytes at `data`. A checksum
// can thus be computed over pieces: ExtendCrc32c(Crc32c(a), b) is that of a and b together.
inline uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t size) {
  return ~crc32c_internal::Extend(~crc, static_cast<const unsigned char*>(data), size);
}

// Returns the checksum of `size` bytes; 0 for none.
inline uint32_t Crc32c(const void* data, size_t size) { return ExtendCrc32c(0, data, size); }

}  // namespace neurontrace
