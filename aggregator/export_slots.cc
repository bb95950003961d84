// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export_slots.h"

namespace neurontrace {

ExportSlots::Slot ExportSlots::Take() {
  const std::lock_guard lock(count_->mutex);
  if (count_->taken >= most_) return nullptr;
  ++count_->taken;
  return {this, [count = count_](const void*) {
            const std::lock_guard lock(count->mutex);
            --count->taken;
          }};
}

}  // namespace neurontrace
