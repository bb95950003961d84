// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// What has become of a chunk when the store says that it has it. Records of captures and deletions
// are synced in either.
enum class Durability : uint8_t {
  // On the disk: it survives the loss of power.
  kSynced,
  // With the kernel: it survives the end of the program by any signal, not that of the machine.
  // After a loss of power the store holds each stream up to some point, seconds before, and what
  // agents had been told is kept beyond that point is gone.
  kPageCache,
};

}  // namespace neurontrace
