// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "aggregator/align/clock_model.h"

namespace neurontrace {

// Why evidence of a device's clock was left out.
enum class DeviceFault : uint8_t {
  kImpossible,
  kFitsNothing,
  kOutOfOrder,
  kNowhere,
  kOffCurve,
  kBeyondBracket,
  kAlone,
  kContradiction,
};

// What was left out, counted, and told once for each cause. One thread at a time.
class DeviceFaults {
 public:
  void Add(DeviceFault fault, uint64_t x_ns, double amount_ns = 0);
  void WriteTo(ClockModel& model) const;

 private:
  struct Entry {
    uint64_t count = 0;
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    double most_ns = 0;
  };
  std::map<DeviceFault, Entry> entries_;
};

}  // namespace neurontrace
