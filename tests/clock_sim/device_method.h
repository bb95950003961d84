// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "aggregator/align/core/clock_model.h"
#include "tests/clock_sim/device_world.h"
#include "tests/clock_sim/host_method.h"

namespace neurontrace {

// Ways to bring a core's stamps to its host's clock, all from the same records.

// What a method made of one core.
struct DeviceMapping {
  std::vector<Mapped> mapped;  // one a stamp
  ClockModel model = {};       // of a method that makes one
  uint64_t fit_ns = 0;         // processor time that the model took
};

struct DeviceMethod {
  std::string_view name;
  DeviceMapping (*map)(const DeviceRecords& records, std::span<const DeviceStamp> stamps) = nullptr;
};

// The product.
DeviceMapping MapDeviceByProduct(const DeviceRecords& records, std::span<const DeviceStamp> stamps);
// The peers, as docs/user/clock_accuracy.md says.
std::span<const DeviceMethod> DeviceBaselines();

}  // namespace neurontrace
