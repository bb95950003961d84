// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "trace/ids.h"

namespace neurontrace {

class Store;

// How much of the disk is taken, and by whom: what quotas are held against. Cheap enough to be
// asked for every chunk group and every tick: no answer but the first of each capture reads the
// store. Any thread; must not outlive the store.
class StoreUsage {
 public:
  explicit StoreUsage(Store& store) : store_(store) {}

  // Chunks of a capture as they are stored (headers and compressed columns), without what has
  // expired; 0 of one that is not known. Errors of reading the store.
  absl::StatusOr<uint64_t> CaptureBytes(const CaptureId& id) const;
  // What the disk has left for this process. UINT64_MAX for a store in memory.
  absl::StatusOr<uint64_t> FreeBytes() const;

 private:
  Store& store_;
};

}  // namespace neurontrace
