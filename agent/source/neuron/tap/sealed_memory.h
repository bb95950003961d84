// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

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

}  // namespace neurontrace
