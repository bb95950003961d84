// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace neurontrace {

// The mapping of a memory file that another process made and can write to at any time.
struct SealedMemory {
  uint8_t* base = nullptr;
  size_t bytes = 0;
  // The kernel's numbers for the file.
  dev_t device = 0;
  ino_t inode = 0;
};

// Maps a memory file of `bytes_min` to `bytes_max` bytes for reading and writing; `memfd` remains
// the caller's, who unmaps the result. Fails with INVALID_ARGUMENT unless the file is sealed
// against resizing: without that the other side could shrink it, and a read would raise SIGBUS
// here. `whose` names the other side in messages. Any thread.
absl::StatusOr<SealedMemory> MapSealedMemory(int memfd, uint64_t bytes_min, uint64_t bytes_max,
                                             std::string_view whose);

// Returns the value of a field of such memory, loaded exactly once: the other side may change it
// between two loads, and a plain load may become two. Use it for fields that are no atomics.
template <typename T>
T LoadOnce(T& field) {
  return std::atomic_ref(field).load(std::memory_order_relaxed);
}

// Copies bytes of such memory. The caller examines the copy only; the compiler does not read the
// memory again in place of the copy.
void CopyOnce(const void* from, void* to, size_t bytes);

// Copies bytes from a position of a ring in such memory, which may wrap around its end. Requires
// that `ring_bytes` is a power of two and `bytes` at most as large.
void CopyFromRing(const uint8_t* ring, uint64_t ring_bytes, uint64_t position, char* to,
                  size_t bytes);

}  // namespace neurontrace
