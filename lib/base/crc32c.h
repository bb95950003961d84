// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), as iSCSI (RFC 3720), ext4 and LevelDB compute it: reflected, with initial
// and final inversion. Uses SSE4.2 where the processor has it, three chains of its instruction for
// long inputs, otherwise a table. Header only and
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

// Extends a state by a run of zero bytes. As that is linear over GF(2), the result is the sum of
// what the state's bytes contribute, a table for each (Mark Adler, "crc32c.c", 2013).
struct ZeroBytes {
  uint32_t entries[4][256];
};

// Returns the product of a matrix over GF(2), given by its columns, and a vector.
constexpr uint32_t Multiply(const uint32_t (&columns)[32], uint32_t vector) {
  uint32_t product = 0;
  for (int bit = 0; bit < 32; ++bit) product ^= (vector >> bit & 1) != 0 ? columns[bit] : 0U;
  return product;
}

// Requires that the length of the run is a power of two.
constexpr ZeroBytes MakeZeroBytes(size_t count) {
  uint32_t columns[32] = {};
  for (int bit = 0; bit < 32; ++bit) {
    const uint32_t state = uint32_t{1} << bit;
    columns[bit] = (state >> 8) ^ kTable.entries[state & 0xff];
  }
  // Each squaring doubles how many zero bytes the matrix stands for.
  for (; count > 1; count /= 2) {
    uint32_t squared[32] = {};
    for (int bit = 0; bit < 32; ++bit) squared[bit] = Multiply(columns, columns[bit]);
    for (int bit = 0; bit < 32; ++bit) columns[bit] = squared[bit];
  }
  ZeroBytes zeros{};
  for (int byte = 0; byte < 4; ++byte) {
    for (uint32_t i = 0; i < 256; ++i) zeros.entries[byte][i] = Multiply(columns, i << (8 * byte));
  }
  return zeros;
}

constexpr uint32_t AppendZeros(const ZeroBytes& zeros, uint32_t state) {
  return zeros.entries[0][state & 0xff] ^ zeros.entries[1][state >> 8 & 0xff] ^
         zeros.entries[2][state >> 16 & 0xff] ^ zeros.entries[3][state >> 24];
}

// The lengths of one chain. The longer one halves what joining the chains costs, the shorter one
// serves records of a few kilobytes.
inline constexpr size_t kLongChainBytes = 2'048;
inline constexpr size_t kShortChainBytes = 256;
inline constexpr ZeroBytes kLongChain = MakeZeroBytes(kLongChainBytes);
inline constexpr ZeroBytes kShortChain = MakeZeroBytes(kShortChainBytes);

#if defined(__x86_64__)
// The attribute lets the compiler use the instruction in these functions alone; the rest of the
// program must run on processors without it. memcpy, as `data` is not aligned.
__attribute__((target("sse4.2"))) inline uint32_t ExtendByOneChain(uint32_t state,
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

// The instruction takes three cycles, and one can begin in each. So this computes three parts of
// `chain` bytes side by side, the second and the third from state 0, and joins them by extending
// each by as many zero bytes as follow it (Gopal et al., "Fast CRC Computation for iSCSI Polynomial
// Using CRC32 Instruction", Intel, 2011). Advances `data`, and leaves less than three parts.
__attribute__((target("sse4.2"))) inline uint32_t ExtendByThreeChains(uint32_t state,
                                                                      const unsigned char*& data,
                                                                      size_t& size, size_t chain,
                                                                      const ZeroBytes& zeros) {
  for (; size >= 3 * chain; data += 3 * chain, size -= 3 * chain) {
    uint64_t first = state;
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < chain; i += 8) {
      uint64_t words[3];
      memcpy(&words[0], data + i, 8);
      memcpy(&words[1], data + chain + i, 8);
      memcpy(&words[2], data + 2 * chain + i, 8);
      first = __builtin_ia32_crc32di(first, words[0]);
      second = __builtin_ia32_crc32di(second, words[1]);
      third = __builtin_ia32_crc32di(third, words[2]);
    }
    const uint32_t joined =
        AppendZeros(zeros, static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second);
    state = AppendZeros(zeros, joined) ^ static_cast<uint32_t>(third);
  }
  return state;
}

inline uint32_t ExtendBySse42(uint32_t state, const unsigned char* data, size_t size) {
  if (size >= 3 * kShortChainBytes) {
    state = ExtendByThreeChains(state, data, size, kLongChainBytes, kLongChain);
    state = ExtendByThreeChains(state, data, size, kShortChainBytes, kShortChain);
  }
  return ExtendByOneChain(state, data, size);
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
