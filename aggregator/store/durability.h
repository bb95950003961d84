// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// What is guaranteed for a chunk once the store has acknowledged it. Records of captures and
// deletions are synced in both cases. A plain value.
enum class Durability : uint8_t {
  // It is on the disk and survives a loss of power.
  kSynced,
  // The kernel has it: it survives the end of the process by any signal, but not a crash of the
  // machine. After a loss of power the store holds each stream up to some point, seconds earlier,
  // and what was acknowledged to agents beyond that point is lost.
  kPageCache,
};

}  // namespace neurontrace
