// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "aggregator/store/store.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// How much of the disk is used, and by which capture: the figures that quotas compare. Cheap enough
// for every group of chunks, as only the first question about a capture reads the store. Any
// thread; must not outlive the store.
class StoreUsage {
 public:
  explicit StoreUsage(Store& store) : store_(store) {}

  // Returns the stored bytes of a capture's chunks, headers and compressed columns, without what
  // has expired; 0 if it is unknown. Fails with the error of reading the store.
  absl::StatusOr<uint64_t> CaptureBytes(const CaptureId& id) const;
  // Returns what the disk has left for this process; UINT64_MAX for a store in memory.
  absl::StatusOr<uint64_t> FreeBytes() const;

 private:
  Store& store_;
};

}  // namespace neurontrace
