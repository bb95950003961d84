// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/store_usage.h"

namespace neurontrace {

absl::StatusOr<uint64_t> StoreUsage::CaptureBytes(const CaptureId& id) const {
  return store_.chunks().BytesOf(id);
}

absl::StatusOr<uint64_t> StoreUsage::FreeBytes() const { return store_.free_bytes(); }

}  // namespace neurontrace
