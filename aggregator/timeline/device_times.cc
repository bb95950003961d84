// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/device_times.h"

namespace neurontrace {

void DeviceTimes::Begin(const ClockMaps* clocks, const WorkerIdentity& worker) {
  clocks_ = clocks;
  worker_ = &worker;
  cursors_.clear();
}

ClockMapCursor* DeviceTimes::CursorOf(uint64_t core) {
  for (auto& [known, cursor] : cursors_) {
    if (known == core) return cursor ? &*cursor : nullptr;
  }
  if (cursors_.size() >= kCoresMax) cursors_.clear();
  auto& [known, cursor] = cursors_.emplace_back(core, std::nullopt);
  if (const ClockMap* map = clocks_->Device(*worker_, core)) cursor.emplace(*map);
  return cursor ? &*cursor : nullptr;
}

std::optional<DeviceTimes::HostTime> DeviceTimes::Map(uint64_t core, uint64_t device_ns,
                                                      uint64_t runtime_ns) {
  if (clocks_ == nullptr || !clocks_->has_devices()) return std::nullopt;
  ClockMapCursor* cursor = CursorOf(core);
  if (cursor == nullptr) return std::nullopt;
  const std::optional<uint64_t> bound_ns = cursor->ErrorBoundNs(device_ns);
  if (!bound_ns) return std::nullopt;
  const uint64_t host_ns = cursor->ToReference(device_ns);
  const uint64_t shift_ns = host_ns > runtime_ns ? host_ns - runtime_ns : runtime_ns - host_ns;
  if (shift_ns > kShiftMaxNs) return std::nullopt;
  return HostTime{host_ns, *bound_ns};
}

}  // namespace neurontrace
